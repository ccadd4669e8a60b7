// Writes to components and swizzles of vectors, which are properties (device/metal_stdlib/vec.h).
//
// Clang reads a property that is the object of another property or of a subscript into a temporary. So a write through
// a swizzle of a swizzle (`v.wzyx.x = 1`, `v.xyz[2] = 1`) would change that temporary and be lost without a word. In
// Metal it changes the vector. Here it becomes one write to the components of the vector itself, through the property
// `__components` of the device library's swizzles. Rejected: to write the whole inner swizzle back, which would also
// write components that the statement does not name, and that other threads may be writing.
//
// Writes to constants, to temporaries and to components that are named twice are refused in Clang's words for its own
// vectors; otherwise its messages would name the functions of the properties, or there would be none.
//
// Where a template is instantiated, Clang takes an operator of a property for one of a built-in type, and fails:
// `v.x += 1`, `v.xy++` and `-v.xy` did not compile if `v` has a type that depends on the template's parameters. Such
// operators are built here as they are outside of templates.
//
// The linker redirects calls between Clang's libraries to these functions (--wrap in CMakeLists.txt).
#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ExprCXX.h>
#include <clang/Basic/DiagnosticSema.h>
#include <clang/Sema/Initialization.h>
#include <clang/Sema/Sema.h>
#include <clang/Sema/SemaPseudoObject.h>
#include <llvm/ADT/SmallVector.h>

#include <algorithm>

namespace {

using namespace clang;

constexpr llvm::StringRef kLetters[] = {"xyzw", "rgba"};

// The components that the property names, in order; none if it is no component or swizzle of a vector.
llvm::SmallVector<unsigned, 4> components_of(const MSPropertyDecl& property) {
  llvm::SmallVector<unsigned, 4> components;
  if (!property.hasGetter() || !property.getGetterId()->getName().starts_with("__get_")) return components;
  llvm::StringRef name = property.getName();
  for (llvm::StringRef letters : kLetters) {
    components.clear();
    for (char letter : name)
      if (size_t component = letters.find(letter); component != llvm::StringRef::npos)
        components.push_back(static_cast<unsigned>(component));
    if (components.size() == name.size()) return components;
  }
  return {};
}

// The property of which the expression is a value; null if it is none.
MSPropertyRefExpr* property_read(Expr* expression) {
  for (Expr* inner = nullptr; expression; expression = inner) {
    inner = nullptr;
    expression = expression->IgnoreParenImpCasts();
    if (auto* temporary = dyn_cast<MaterializeTemporaryExpr>(expression)) inner = temporary->getSubExpr();
    if (auto* read = dyn_cast<PseudoObjectExpr>(expression))
      return dyn_cast<MSPropertyRefExpr>(read->getSyntacticForm()->IgnoreParens());
  }
  return nullptr;
}

// The object of a property, as it was before Clang made it a value of which it evaluates others.
Expr* object_of(const MSPropertyRefExpr& property) {
  Expr* object = property.getBaseExpr();
  if (auto* value = dyn_cast<OpaqueValueExpr>(object); value && value->getSourceExpr()) return value->getSourceExpr();
  return object;
}

// The components of a vector that a swizzle of a swizzle names.
struct NestedSwizzle {
  MSPropertyRefExpr* innermost = nullptr;  // whose object is the vector
  llvm::SmallVector<unsigned, 4> components;
  bool repeats = false;          // one of the inner swizzles names a component twice
  bool is_out_of_range = false;  // one of them has no such component
};

// Follows swizzles from the outermost to the vector. Without components if the property is none of a vector's.
NestedSwizzle follow(MSPropertyRefExpr& outermost) {
  NestedSwizzle result{&outermost, components_of(*outermost.getPropertyDecl())};
  if (result.components.empty()) return result;
  while (MSPropertyRefExpr* inner = property_read(object_of(*result.innermost))) {
    llvm::SmallVector<unsigned, 4> components = components_of(*inner->getPropertyDecl());
    if (components.empty()) break;
    for (unsigned& component : result.components) {
      if (component >= components.size()) result.is_out_of_range = true;
      component = components[std::min<size_t>(component, components.size() - 1)];
    }
    result.repeats = result.repeats || !inner->getPropertyDecl()->hasSetter();
    result.innermost = inner;
  }
  return result;
}

// `vector.__components[(Value(*)[code])nullptr]`, where the array's length says which components these are: two bits
// for each from the lowest, then a bit that is set. Null if the vector's class has no such property.
Expr* access_components(Sema& sema, const NestedSwizzle& swizzle, QualType value, SourceLocation end) {
  ASTContext& context = sema.getASTContext();
  MSPropertyDecl* property = nullptr;
  for (NamedDecl* found :
       swizzle.innermost->getPropertyDecl()->getDeclContext()->lookup(&context.Idents.get("__components")))
    property = dyn_cast<MSPropertyDecl>(found);
  if (!property) return nullptr;
  uint64_t code = 1;
  for (size_t i = swizzle.components.size(); i > 0; --i) code = code << 2 | swizzle.components[i - 1];
  const QualType array = context.getConstantArrayType(value.getUnqualifiedType(), llvm::APInt(64, code), nullptr,
                                                      ArraySizeModifier::Normal,
                                                      /*IndexTypeQuals=*/0);
  auto* base = new (context)
      MSPropertyRefExpr(object_of(*swizzle.innermost), property, swizzle.innermost->isArrow(), context.PseudoObjectTy,
                        VK_LValue, NestedNameSpecifierLoc(), swizzle.innermost->getMemberLoc());
  auto* components = new (context) ImplicitValueInitExpr(context.getPointerType(array));
  return new (context) MSPropertySubscriptExpr(base, components, context.PseudoObjectTy, VK_LValue, OK_Ordinary, end);
}

// Reports a write to a vector that cannot be written; whether it has.
bool is_refused(Sema& sema, SourceLocation operation, const MSPropertyRefExpr& property, SourceRange target) {
  const Expr* object = object_of(property)->IgnoreParens();
  QualType type = object->getType();
  if (type->isDependentType()) return false;
  if (property.isArrow()) {
    type = type->getPointeeType();
  } else if (!object->isLValue()) {
    sema.Diag(operation, diag::err_typecheck_expression_not_modifiable_lvalue) << target;
    return true;
  }
  if (type.isNull() || !type.isConstQualified()) return false;
  // The first of these numbers selects Clang's sentence: for a variable, and for whatever else is constant.
  const auto* name = dyn_cast<DeclRefExpr>(object);
  if (name && isa<VarDecl>(name->getDecl()) && !name->refersToEnclosingVariableOrCapture() &&
      name->getDecl()->getType().isConstQualified())
    sema.Diag(operation, diag::err_typecheck_assign_const) << target << 1 << name->getDecl() << type;
  else
    sema.Diag(operation, diag::err_typecheck_assign_const) << target << 5;
  return true;
}

bool is_property(const Expr* expression) {
  expression = expression->IgnoreParens();
  return isa<MSPropertyRefExpr>(expression) || isa<MSPropertySubscriptExpr>(expression);
}

// What to write to in place of `target`; null, and an error, if it cannot be written.
Expr* written(Sema& sema, SourceLocation operation, Expr* target) {
  Expr* inner = target->IgnoreParens();
  while (auto* element = dyn_cast<MSPropertySubscriptExpr>(inner)) inner = element->getBase()->IgnoreParens();
  auto* property = dyn_cast<MSPropertyRefExpr>(inner);
  if (!property) return target;
  const SourceRange range = target->getSourceRange();
  if (inner != target->IgnoreParens())  // of a swizzle's element, which index_element() has made
    return is_refused(sema, operation, *property, range) ? nullptr : target;
  const NestedSwizzle swizzle = follow(*property);
  const bool is_nested = swizzle.innermost != property;
  // A component that cannot be written is none of a vector: threadIdx's, which its own message is about.
  const bool is_of_vector =
      swizzle.components.size() > 1 || (swizzle.components.size() == 1 && property->getPropertyDecl()->hasSetter());
  if (!is_nested && !is_of_vector) return target;
  if (swizzle.is_out_of_range) {  // as the device library says it of a swizzle of a vector
    sema.Diag(property->getMemberLoc(),
              sema.getDiagnostics().getCustomDiagID(DiagnosticsEngine::Error, "the vector has no such component"));
    return nullptr;
  }
  if (swizzle.repeats || !property->getPropertyDecl()->hasSetter()) {
    sema.Diag(operation, diag::err_typecheck_duplicate_vector_components_not_mlvalue) << range;
    return nullptr;
  }
  if (is_refused(sema, operation, *swizzle.innermost, range)) return nullptr;
  if (!is_nested) return target;
  return access_components(sema, swizzle, property->getPropertyDecl()->getType(), property->getMemberLoc());
}

}  // namespace

// By the ABI, member functions are called like functions whose first parameter is the object.
#define KILN_ASSIGN \
  "_ZN5clang16SemaPseudoObject15checkAssignmentEPNS_5ScopeENS_14SourceLocationENS_18BinaryOperatorKindEPNS_4ExprES6_"
#define KILN_INCREMENT \
  "_ZN5clang16SemaPseudoObject11checkIncDecEPNS_5ScopeENS_14SourceLocationENS_17UnaryOperatorKindEPNS_4ExprE"
#define KILN_UNARY "_ZN5clang4Sema20CreateBuiltinUnaryOpENS_14SourceLocationENS_17UnaryOperatorKindEPNS_4ExprEb"
#define KILN_BINARY "_ZN5clang4Sema18CreateBuiltinBinOpENS_14SourceLocationENS_18BinaryOperatorKindEPNS_4ExprES4_"
#define KILN_OVERLOADED                                             \
  "_ZN5clang4Sema21CreateOverloadedBinOpENS_14SourceLocationENS_18" \
  "BinaryOperatorKindERKNS_17UnresolvedSetImplEPNS_4ExprES7_bbPNS_12FunctionDeclE"
#define KILN_INITIALIZE "_ZN5clang4Sema20AddInitializerToDeclEPNS_4DeclEPNS_4ExprEb"
#define KILN_INDEX \
  "_ZN5clang4Sema23ActOnArraySubscriptExprEPNS_5ScopeEPNS_4ExprENS_14SourceLocationEN4llvm15MutableArrayRefIS4_EES5_"

ExprResult assign_property(SemaPseudoObject*, Scope*, SourceLocation, BinaryOperatorKind, Expr*,
                           Expr*) asm("__real_" KILN_ASSIGN);
ExprResult increment_property(SemaPseudoObject*, Scope*, SourceLocation, UnaryOperatorKind,
                              Expr*) asm("__real_" KILN_INCREMENT);
ExprResult operate_built_in(Sema*, SourceLocation, UnaryOperatorKind, Expr*, bool) asm("__real_" KILN_UNARY);
ExprResult operate_built_in(Sema*, SourceLocation, BinaryOperatorKind, Expr*, Expr*) asm("__real_" KILN_BINARY);
ExprResult operate_overloaded(Sema*, SourceLocation, BinaryOperatorKind, const UnresolvedSetImpl&, Expr*, Expr*, bool,
                              bool, FunctionDecl*) asm("__real_" KILN_OVERLOADED);
void initialize_variable(Sema*, Decl*, Expr*, bool) asm("__real_" KILN_INITIALIZE);
ExprResult index(Sema*, Scope*, Expr*, SourceLocation, MultiExprArg, SourceLocation) asm("__real_" KILN_INDEX);

ExprResult assign_components(SemaPseudoObject*, Scope*, SourceLocation, BinaryOperatorKind, Expr*,
                             Expr*) asm("__wrap_" KILN_ASSIGN);
ExprResult increment_components(SemaPseudoObject*, Scope*, SourceLocation, UnaryOperatorKind,
                                Expr*) asm("__wrap_" KILN_INCREMENT);
ExprResult operate(Sema*, SourceLocation, UnaryOperatorKind, Expr*, bool) asm("__wrap_" KILN_UNARY);
ExprResult operate(Sema*, SourceLocation, BinaryOperatorKind, Expr*, Expr*) asm("__wrap_" KILN_BINARY);
ExprResult operate(Sema*, SourceLocation, BinaryOperatorKind, const UnresolvedSetImpl&, Expr*, Expr*, bool, bool,
                   FunctionDecl*) asm("__wrap_" KILN_OVERLOADED);
void refuse_reference(Sema*, Decl*, Expr*, bool) asm("__wrap_" KILN_INITIALIZE);
ExprResult index_element(Sema*, Scope*, Expr*, SourceLocation, MultiExprArg, SourceLocation) asm("__wrap_" KILN_INDEX);

ExprResult assign_components(SemaPseudoObject* self, Scope* scope, SourceLocation operation, BinaryOperatorKind kind,
                             Expr* target, Expr* value) {
  Expr* components = written(self->SemaRef, operation, target);
  if (!components) return ExprError();
  // The functions of `__components` are templates: Clang would only say that none matches.
  if (components != target && kind == BO_Assign && !value->isTypeDependent()) {
    const QualType type = cast<MSPropertyRefExpr>(target->IgnoreParens())->getPropertyDecl()->getType();
    ExprResult converted = self->SemaRef.PerformCopyInitialization(
        InitializedEntity::InitializeParameter(self->getASTContext(), type, /*Consumed=*/false), SourceLocation(),
        value);
    if (converted.isInvalid()) return ExprError();
    value = converted.get();
  }
  return assign_property(self, scope, operation, kind, components, value);
}

ExprResult increment_components(SemaPseudoObject* self, Scope* scope, SourceLocation operation, UnaryOperatorKind kind,
                                Expr* target) {
  Expr* components = written(self->SemaRef, operation, target);
  return components ? increment_property(self, scope, operation, kind, components) : ExprError();
}

// An element of a swizzle is a property too, so that it can be written.
ExprResult index_element(Sema* self, Scope* scope, Expr* base, SourceLocation begin, MultiExprArg indices,
                         SourceLocation end) {
  if (auto* property = base ? dyn_cast<MSPropertyRefExpr>(base->IgnoreParens()) : nullptr) {
    const bool can_be_written =
        property->getPropertyDecl()->hasSetter() && property->getPropertyDecl()->getType()->isRecordType();
    const NestedSwizzle swizzle = can_be_written ? follow(*property) : NestedSwizzle();
    if (!swizzle.components.empty() && !swizzle.repeats && !swizzle.is_out_of_range)
      if (Expr* components =
              access_components(*self, swizzle, property->getPropertyDecl()->getType(), property->getMemberLoc()))
        base = components;
  }
  return index(self, scope, base, begin, indices, end);
}

// A variable such as `auto&& r = v.xy` would refer to a temporary, so that what is written to it is lost.
void refuse_reference(Sema* self, Decl* declaration, Expr* value, bool is_direct) {
  const auto* variable = dyn_cast_or_null<VarDecl>(declaration);
  const auto* reference = variable ? variable->getType()->getAs<RValueReferenceType>() : nullptr;
  if (reference && !reference->getPointeeType().isConstQualified() && value) {
    if (is_property(value))
      self->Diag(value->getExprLoc(), diag::err_reference_bind_to_vector_element) << 0 << value->getSourceRange();
  }
  initialize_variable(self, declaration, value, is_direct);
}

ExprResult operate(Sema* self, SourceLocation location, UnaryOperatorKind kind, Expr* operand, bool is_after_amp) {
  if (kind != UO_AddrOf && is_property(operand)) return self->BuildUnaryOp(nullptr, location, kind, operand);
  return operate_built_in(self, location, kind, operand, is_after_amp);
}

ExprResult operate(Sema* self, SourceLocation location, BinaryOperatorKind kind, Expr* left, Expr* right) {
  if (is_property(left) || is_property(right)) return self->BuildBinOp(nullptr, location, kind, left, right);
  return operate_built_in(self, location, kind, left, right);
}

ExprResult operate(Sema* self, SourceLocation location, BinaryOperatorKind kind, const UnresolvedSetImpl& functions,
                   Expr* left, Expr* right, bool requires_lookup, bool allows_rewritten, FunctionDecl* defaulted) {
  if (clang::BinaryOperator::isAssignmentOp(kind) && is_property(left))
    return self->BuildBinOp(nullptr, location, kind, left, right);
  return operate_overloaded(self, location, kind, functions, left, right, requires_lookup, allows_rewritten, defaulted);
}
