#include "compiler/clang/threadgroup_variables.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/TypeLoc.h>
#include <clang/Basic/ParsedAttrInfo.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Sema/ParsedAttr.h>
#include <clang/Sema/Sema.h>

#include <algorithm>

#include "compiler/ir/entry.h"
#include "compiler/ir/sections.h"
#include "core/text.h"

namespace kiln {
namespace {

// Minimum size of a private variable for which Clang must not generate code. Smaller ones are refused in the generated
// code, so that functions that are never called may have them.
constexpr uint64_t kHugeBytes = uint64_t{1} << 30;

// ---- Kiln's attributes. Clang looks up unknown attributes in a plugin registry.

ThreadgroupVariables& variables_of(clang::Sema& sema) {
  return static_cast<ThreadgroupVariables&>(sema.getASTConsumer());
}

class SharedAttribute : public clang::ParsedAttrInfo {
 public:
  SharedAttribute() {
    static constexpr Spelling kSpelling[] = {{clang::AttributeCommonInfo::AS_GNU, "kiln_shared"}};
    Spellings = kSpelling;
  }
  AttrHandling handleDeclAttribute(clang::Sema& sema, clang::Decl* declaration,
                                   const clang::ParsedAttr& attribute) const override {
    variables_of(sema).handle_shared(*declaration, attribute.getLoc());
    return AttributeApplied;
  }
};

class DeclarationAttribute : public clang::ParsedAttrInfo {
 public:
  DeclarationAttribute() {
    static constexpr Spelling kSpelling[] = {{clang::AttributeCommonInfo::AS_GNU, "kiln_declaration"}};
    Spellings = kSpelling;
    IsSupportedByPragmaAttribute = true;
  }
  void getPragmaAttributeMatchRules(llvm::SmallVectorImpl<std::pair<clang::attr::SubjectMatchRule, bool>>& rules,
                                    const clang::LangOptions&) const override {
    for (clang::attr::SubjectMatchRule rule :
         {clang::attr::SubjectMatchRule_variable, clang::attr::SubjectMatchRule_field,
          clang::attr::SubjectMatchRule_function})
      rules.emplace_back(rule, true);
  }
  AttrHandling handleDeclAttribute(clang::Sema& sema, clang::Decl* declaration,
                                   const clang::ParsedAttr&) const override {
    variables_of(sema).handle_declaration(*declaration);
    return AttributeApplied;
  }
};

clang::ParsedAttrInfoRegistry::Add<SharedAttribute> shared_attribute("kiln_shared", "");
clang::ParsedAttrInfoRegistry::Add<DeclarationAttribute> declaration_attribute("kiln_declaration", "");

// ---- Types

// Whether objects of the type are qualified by `threadgroup`. A pointer to such an object is not.
//
// Some sugar must be ignored: `auto` and template parameters are deduced from values, which have no address space, and
// so is the type of an expression other than a variable's name.
bool is_qualified(clang::QualType type, const clang::ASTContext& context) {
  while (!type.isNull()) {
    const clang::Type* level = type.getTypePtr();
    if (const auto* attributed = llvm::dyn_cast<clang::AttributedType>(level)) {
      if (attributed->getAttrKind() == clang::attr::NoDeref) return true;
      type = attributed->getModifiedType();
    } else if (const auto* array = llvm::dyn_cast<clang::ArrayType>(level)) {
      type = array->getElementType();
    } else if (llvm::isa<clang::ParenType, clang::TypedefType, clang::UsingType, clang::ElaboratedType,
                         clang::MacroQualifiedType>(level)) {
      type = type.getSingleStepDesugaredType(context);
    } else if (const auto* named = llvm::dyn_cast<clang::TemplateSpecializationType>(level)) {
      if (!named->isTypeAlias()) return false;
      type = named->getAliasedType();
    } else if (const auto* unqualified = llvm::dyn_cast<clang::TypeOfType>(level)) {
      type = unqualified->getUnmodifiedType();
    } else {
      const clang::Expr* expression = nullptr;
      if (const auto* decltype_of = llvm::dyn_cast<clang::DecltypeType>(level))
        expression = decltype_of->getUnderlyingExpr();
      if (const auto* type_of = llvm::dyn_cast<clang::TypeOfExprType>(level))
        expression = type_of->getUnderlyingExpr()->IgnoreParens();
      const auto* name = llvm::dyn_cast_or_null<clang::DeclRefExpr>(expression);
      if (!name) return false;
      type = name->getDecl()->getType();
    }
  }
  return false;
}

// The constructor of objects in threadgroup memory (the rewriter's mark_threadgroup_constructors()), where the class
// has one beside its constructor without parameters.
clang::CXXConstructorDecl& threadgroup_constructor(clang::CXXConstructorDecl& constructor) {
  if (constructor.getNumParams() > 0) return constructor;
  for (clang::CXXConstructorDecl* other : constructor.getParent()->ctors()) {
    if (other->getNumParams() != 1) continue;
    const auto* type = other->getParamDecl(0)->getType()->getAs<clang::EnumType>();
    if (type && type->getDecl()->getName() == kThreadgroupObject) return *other;
  }
  return constructor;
}

// An implicit default initialiser: the call of a constructor without arguments.
clang::CXXConstructExpr* constructor_call(clang::Expr* initializer) {
  if (auto* cleanups = llvm::dyn_cast_or_null<clang::ExprWithCleanups>(initializer))
    initializer = cleanups->getSubExpr();
  return llvm::dyn_cast_or_null<clang::CXXConstructExpr>(initializer);
}

bool has_empty_body(const clang::FunctionDecl& function) {
  const auto* body = llvm::dyn_cast_or_null<clang::CompoundStmt>(function.getBody());
  return body && body->body_empty();
}

}  // namespace

ThreadgroupVariables::ThreadgroupVariables(clang::CodeGenerator& generator, const KernelUnit& unit,
                                           const DiagnosticCollector& diagnostics, std::vector<Diagnostic>& invalid,
                                           std::vector<Diagnostic>& unsupported)
    : generator_(generator), unit_(unit), diagnostics_(diagnostics), invalid_(invalid), unsupported_(unsupported) {}

void ThreadgroupVariables::set_parser(clang::Sema& sema, const std::vector<clang::Token>& tokens) {
  sema_ = &sema;
  tokens_ = &tokens;
}

std::string too_large(const std::string& what, uint64_t bytes) {
  return concat(what, " takes ", bytes, " bytes, which is too much for a thread's private variables");
}

// ---- Attribute handlers, called while Clang parses

void ThreadgroupVariables::handle_declaration(clang::Decl& declaration) {
  clang::ASTContext& context = declaration.getASTContext();
  std::string name;
  if (const auto* named = llvm::dyn_cast<clang::NamedDecl>(&declaration)) name = named->getNameAsString();
  std::string quoted = name.empty() ? "" : concat("'", name, "': ");
  if (auto* parameter = llvm::dyn_cast<clang::ParmVarDecl>(&declaration)) {
    if (is_qualified(parameter->getType(), context))
      invalid_.push_back(diagnostics_.at(context.getSourceManager(), parameter->getLocation(),
                                         concat(quoted, "a parameter cannot be in threadgroup memory")));
  } else if (auto* variable = llvm::dyn_cast<clang::VarDecl>(&declaration)) {
    if (!is_qualified(variable->getType(), context)) return;
    if (variable->isStaticDataMember())
      invalid_.push_back(diagnostics_.at(context.getSourceManager(), variable->getLocation(),
                                         concat(quoted, "a member cannot be in threadgroup memory of its own")));
    else
      make_threadgroup(*variable, variable->getLocation());
  } else if (auto* field = llvm::dyn_cast<clang::FieldDecl>(&declaration)) {
    if (is_qualified(field->getType(), context))
      invalid_.push_back(diagnostics_.at(context.getSourceManager(), field->getLocation(),
                                         concat(quoted, "a member cannot be in threadgroup memory of its own")));
  } else if (auto* function = llvm::dyn_cast<clang::FunctionDecl>(&declaration)) {
    if (is_qualified(function->getReturnType(), context))
      invalid_.push_back(diagnostics_.at(context.getSourceManager(), function->getLocation(),
                                         concat(quoted, "a function's result cannot be in threadgroup memory")));
  }
}

void ThreadgroupVariables::handle_shared(clang::Decl& declaration, clang::SourceLocation attribute) {
  auto* variable = llvm::dyn_cast<clang::VarDecl>(&declaration);
  if (!variable || llvm::isa<clang::ParmVarDecl>(variable) || variable->isStaticDataMember()) {
    invalid_.push_back(diagnostics_.at(declaration.getASTContext().getSourceManager(), attribute,
                                       "'__shared__' is for variables of functions"));
    return;
  }
  make_threadgroup(*variable, attribute);
}

void ThreadgroupVariables::make_threadgroup(clang::VarDecl& variable, clang::SourceLocation where) const {
  bool is_dynamic = unit_.dialect == Dialect::kCuda && variable.getStorageClass() == clang::SC_Extern;
  if (!is_dynamic) variable.setStorageClass(clang::SC_Static);
  if (variable.hasAttr<clang::SectionAttr>()) return;
  variable.addAttr(clang::SectionAttr::Create(variable.getASTContext(), kThreadgroupSection, clang::SourceRange(where),
                                              clang::SectionAttr::GNU_section));
}

// ---- AST consumer, called after Clang has parsed a declaration

bool ThreadgroupVariables::HandleTopLevelDecl(clang::DeclGroupRef group) {
  for (clang::Decl* declaration : group) {
    check_declaration(*declaration);
    const auto* linkage = llvm::dyn_cast<clang::LinkageSpecDecl>(declaration);  // extern "C"
    const clang::Decl* inner = linkage && !linkage->decls_empty() ? *linkage->decls_begin() : nullptr;
    const auto* function = llvm::dyn_cast_or_null<clang::FunctionDecl>(inner);
    if (!function || !function->getIdentifier() || function->getName() != kBodyFunction || is_popped_) continue;
    is_popped_ = true;
    sema_->ActOnPragmaAttributePop(function->getLocation(), /*Namespace=*/nullptr);
  }
  return has_errors() || generator_.HandleTopLevelDecl(group);
}

void ThreadgroupVariables::HandleInlineFunctionDefinition(clang::FunctionDecl* function) {
  check_declaration(*function);
  if (!has_errors()) generator_.HandleInlineFunctionDefinition(function);
}

void ThreadgroupVariables::check_declaration(clang::Decl& declaration) {
  if (auto* variable = llvm::dyn_cast<clang::VarDecl>(&declaration)) return check_variable(*variable);
  auto* context = llvm::dyn_cast<clang::DeclContext>(&declaration);
  if (!context || llvm::isa<clang::EnumDecl>(declaration)) return;
  if (const auto* function = llvm::dyn_cast<clang::FunctionDecl>(&declaration);
      function && !function->isThisDeclarationADefinition())
    return;
  if (checked_.insert(&declaration).second) check_declarations(*context);
  if (const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(&declaration); record && record->isLambda())
    check_captures(*record);
}

void ThreadgroupVariables::check_declarations(clang::DeclContext& context) {
  for (clang::Decl* declaration : context.decls()) check_declaration(*declaration);
}

void ThreadgroupVariables::check_size(const clang::VarDecl& variable) {
  clang::QualType type = variable.getType();
  if (!variable.hasLocalStorage() || type->isDependentType() || type->isIncompleteType() || !type->isConstantSizeType())
    return;
  const auto bytes = static_cast<uint64_t>(variable.getASTContext().getTypeSizeInChars(type).getQuantity());
  if (bytes < kHugeBytes) return;
  huge_.push_back(diagnostics_.at(sema_->getSourceManager(), variable.getLocation(),
                                  too_large(concat("'", variable.getNameAsString(), "'"), bytes)));
}

void ThreadgroupVariables::check_variable(clang::VarDecl& variable) {
  if (!variable.isInvalidDecl() && !is_qualified(variable.getType(), variable.getASTContext())) check_size(variable);
  if (llvm::isa<clang::ParmVarDecl>(variable) || variable.isInvalidDecl()) return;
  const auto* section = variable.getAttr<clang::SectionAttr>();
  if (!section) {
    // A type that depends on template parameters is known only in the instance.
    if (!is_qualified(variable.getType(), variable.getASTContext())) return;
    make_threadgroup(variable, variable.getLocation());
    late_.insert(&variable);
  } else if (section->getName() != kThreadgroupSection) {
    return;
  }
  clang::Expr* initializer = variable.getInit();
  if (!initializer) return;
  clang::CXXConstructExpr* call = constructor_call(initializer);
  bool is_written = variable.getInitStyle() != clang::VarDecl::CallInit || !call ||
                    call->getParenOrBraceRange().isValid() || call->isListInitialization();
  if (is_written) {
    Diagnostic diagnostic = diagnostics_.at(variable.getASTContext().getSourceManager(), initializer_of(variable),
                                            concat("a", variable_kind(), " cannot have an initial value"));
    // An instance of a template repeats the template's error.
    bool is_duplicate = std::any_of(invalid_.begin(), invalid_.end(), [&](const Diagnostic& other) {
      return other.text == diagnostic.text && other.line == diagnostic.line && other.column == diagnostic.column;
    });
    if (!is_duplicate) invalid_.push_back(std::move(diagnostic));
    return;
  }
  if (variable.getType()->isDependentType()) return;
  clang::CXXConstructorDecl* constructor = call->getConstructor();
  if (std::string effect = constructor_effect(*constructor, variable.getLocation()); !effect.empty()) {
    refuse(variable.getLocation(), concat("'", variable.getNameAsString(), "': a", variable_kind(),
                                          " cannot have a constructor that does something: ", effect));
    return;
  }
  clang::CXXRecordDecl* record = constructor->getParent();
  if (clang::CXXDestructorDecl* destructor = record->getDestructor(); destructor && !destructor->isTrivial()) {
    if (!does_nothing(*destructor)) {
      refuse(variable.getLocation(),
             concat("'", variable.getNameAsString(), "': a", variable_kind(),
                    " cannot have a destructor that does something, as '", record->getNameAsString(), "' has"));
      return;
    }
    variable.addAttr(clang::NoDestroyAttr::CreateImplicit(variable.getASTContext()));
  }
  variable.setInit(nullptr);
}

// Refuses lambdas that have captured a variable by copy before it was made static.
void ThreadgroupVariables::check_captures(const clang::CXXRecordDecl& lambda) {
  if (late_.empty()) return;
  for (const clang::LambdaCapture& capture : lambda.captures()) {
    if (!capture.capturesVariable() || capture.getCaptureKind() != clang::LCK_ByCopy) continue;
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(capture.getCapturedVar());
    if (variable && late_.count(variable))
      refuse(capture.getLocation(), concat("'", variable->getNameAsString(), "': a", variable_kind(),
                                           " whose type depends on a template cannot be captured by copy"));
  }
}

// Describes the constructor's effect in a clause that names the class; empty if it has none. Constructors in the device
// library, including MLX's, only set zeros. Ignoring them is fine, since threadgroup memory is initially unspecified.
std::string ThreadgroupVariables::constructor_effect(clang::CXXConstructorDecl& default_constructor,
                                                     clang::SourceLocation where) const {
  clang::CXXConstructorDecl& constructor = threadgroup_constructor(default_constructor);
  const bool is_marked = &constructor != &default_constructor;
  if (constructor.isTrivial() || !is_in_caller_text(constructor.getParent()->getLocation())) return "";
  std::string type = constructor.getParent()->getNameAsString();
  type = type.empty() ? "its type" : concat("'", type, "'");
  if (constructor.getNumParams() > 0 && !is_marked) return concat("that of ", type, " has parameters");
  if (constructor.isDeleted()) return concat("that of ", type, " is deleted");
  if (!constructor.isDefined() && constructor.isTemplateInstantiation())
    sema_->InstantiateFunctionDefinition(where, &constructor);
  const clang::FunctionDecl* definition = nullptr;
  if (!constructor.isDefined(definition)) return concat("that of ", type, " is not defined");
  for (const clang::CXXCtorInitializer* part : llvm::cast<clang::CXXConstructorDecl>(definition)->inits()) {
    clang::Expr* value = part->getInit();
    if (auto* member = llvm::dyn_cast_or_null<clang::CXXDefaultInitExpr>(value)) value = member->getExpr();
    clang::CXXConstructExpr* call = constructor_call(value);
    if (call && call->getNumArgs() == 0) {
      std::string effect = constructor_effect(*call->getConstructor(), where);
      if (!effect.empty()) return effect;
      continue;
    }
    const clang::FieldDecl* member = part->getAnyMember();
    if (!member) return concat("that of ", type, " passes arguments to another");
    return concat("that of ", type, " initializes '", member->getNameAsString(), "'");
  }
  if (!has_empty_body(*definition)) return concat("that of ", type, " has statements");
  return "";
}

bool ThreadgroupVariables::does_nothing(const clang::CXXDestructorDecl& destructor) const {
  if (destructor.isTrivial()) return true;
  const clang::FunctionDecl* definition = nullptr;
  if (!destructor.isDefined(definition) || !has_empty_body(*definition)) return false;
  auto is_defined = [&](clang::QualType type) {
    const clang::CXXRecordDecl* record = type->getBaseElementTypeUnsafe()->getAsCXXRecordDecl();
    const clang::CXXDestructorDecl* inner = record ? record->getDestructor() : nullptr;
    return !inner || does_nothing(*inner);
  };
  const clang::CXXRecordDecl* record = destructor.getParent();
  return llvm::all_of(record->bases(),
                      [&](const clang::CXXBaseSpecifier& base) { return is_defined(base.getType()); }) &&
         llvm::all_of(record->fields(), [&](const clang::FieldDecl* field) { return is_defined(field->getType()); });
}

bool ThreadgroupVariables::is_in_caller_text(clang::SourceLocation location) const {
  const clang::SourceManager& sources = sema_->getSourceManager();
  return location.isValid() && diagnostics_.line_of(sources, sources.getExpansionLoc(location)).has_value();
}

// The location of its `=`, `{` or `(`: the first one after the variable's name outside square brackets.
clang::SourceLocation ThreadgroupVariables::initializer_of(const clang::VarDecl& variable) const {
  namespace tok = clang::tok;
  auto token = std::find_if(tokens_->begin(), tokens_->end(), [&](const clang::Token& t) {
    return t.getLocation() == variable.getLocation() && t.is(tok::identifier);
  });
  if (token == tokens_->end()) return variable.getLocation();
  int depth = 0;
  for (++token; token != tokens_->end(); ++token) {
    if (depth <= 0 && token->isOneOf(tok::equal, tok::l_brace, tok::l_paren)) return token->getLocation();
    depth += token->is(tok::l_square);
    depth -= token->is(tok::r_square);
    if (token->is(tok::semi)) break;
  }
  return variable.getLocation();
}

void ThreadgroupVariables::refuse(clang::SourceLocation where, std::string message) {
  Diagnostic diagnostic = diagnostics_.at(sema_->getSourceManager(), where, std::move(message));
  bool is_duplicate = std::any_of(unsupported_.begin(), unsupported_.end(), [&](const Diagnostic& other) {
    return other.text == diagnostic.text && other.line == diagnostic.line && other.message == diagnostic.message;
  });
  if (!is_duplicate) unsupported_.push_back(std::move(diagnostic));
}

std::string ThreadgroupVariables::variable_kind() const {
  return unit_.dialect == Dialect::kCuda ? " __shared__ variable" : " variable in threadgroup memory";
}

}  // namespace kiln
