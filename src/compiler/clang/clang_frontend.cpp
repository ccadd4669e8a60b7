#include "compiler/clang/clang_frontend.h"

#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/AST/Expr.h>
#include <clang/Basic/Builtins.h>
#include <clang/Basic/TargetInfo.h>
#include <clang/CodeGen/ModuleBuilder.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Lex/LexDiagnostic.h>
#include <clang/Lex/PPCallbacks.h>
#include <clang/Lex/Pragma.h>
#include <clang/Lex/Preprocessor.h>
#include <clang/Lex/PreprocessorOptions.h>
#include <clang/Parse/Parser.h>
#include <clang/Sema/Sema.h>
#include <llvm/ADT/SCCIterator.h>
#include <llvm/Analysis/CallGraph.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <optional>

#include "compiler/clang/clang_session.h"
#include "compiler/clang/device_library.h"
#include "compiler/clang/diagnostics.h"
#include "compiler/clang/dialects/cuda_tokens.h"
#include "compiler/clang/threadgroup_variables.h"
#include "compiler/clang/token_rewriter.h"
#include "compiler/ir/abandonment.h"
#include "compiler/ir/entry.h"
#include "compiler/ir/sections.h"
#include "core/attribute_table.h"
#include "core/diagnostic.h"
#include "core/included_file.h"
#include "core/text.h"

namespace kiln {
namespace {

constexpr const char* kMainFile = "kiln.cpp";

// Limit on tokens, and on the macros and files that expand to them; no kernel has this many. Without a limit, a few
// lines of macros that each name another one twice would keep Clang busy, and its memory growing, for ever.
constexpr size_t kMaxTokens = size_t{1} << 20;

// A larger private variable is refused before any pass sees it.
constexpr uint64_t kMaxVariableBytes = uint64_t{1} << 20;

// Ends the preprocessor's work past kMaxTokens expansions. While macros and files expand to nothing it returns no
// token, so that a loop around it cannot stop it; and an exception must not pass through Clang, which is compiled
// without them. Instead nothing expands any more: macros are undefined, files are not entered, and what is left is as
// long as the text.
class ExpansionLimit : public clang::PPCallbacks {
 public:
  explicit ExpansionLimit(clang::Preprocessor& preprocessor) : preprocessor_(preprocessor) {}

  /// Where the limit was exceeded, if it was.
  std::optional<clang::SourceLocation> exceeded() const { return exceeded_; }

  void MacroExpands(const clang::Token& name, const clang::MacroDefinition&, clang::SourceRange,
                    const clang::MacroArgs*) override {
    count(name.getLocation());
  }
  void LexedFileChanged(clang::FileID, LexedFileChangeReason, clang::SrcMgr::CharacteristicKind, clang::FileID,
                        clang::SourceLocation where) override {
    count(where);
  }

 private:
  void count(clang::SourceLocation where) {
    if (++count_ <= kMaxTokens || exceeded_) return;
    exceeded_ = where;
    preprocessor_.getDiagnostics().setSuppressAllDiagnostics(true);
    preprocessor_.getPreprocessorOpts().SingleFileParseMode = true;  // enters no further file
    std::vector<clang::IdentifierInfo*> macros;
    for (const auto& [name, state] : preprocessor_.macros(/*IncludeExternalMacros=*/false))
      if (name->hasMacroDefinition()) macros.push_back(preprocessor_.getIdentifierInfo(name->getName()));
    for (clang::IdentifierInfo* name : macros)
      preprocessor_.appendMacroDirective(
          name, new (preprocessor_.getPreprocessorAllocator()) clang::UndefMacroDirective(where));
  }

  clang::Preprocessor& preprocessor_;
  size_t count_ = 0;
  std::optional<clang::SourceLocation> exceeded_;
};

// Refuses `__global__` in a body. It is a macro, so the token rewriter never sees it.
class WholeKernels : public clang::PPCallbacks {
 public:
  WholeKernels(const KernelUnit& unit, clang::SourceManager& sources, const DiagnosticCollector& diagnostics,
               std::vector<Diagnostic>& invalid)
      : unit_(unit), sources_(sources), diagnostics_(diagnostics), invalid_(invalid) {}

  void MacroExpands(const clang::Token& name, const clang::MacroDefinition&, clang::SourceRange,
                    const clang::MacroArgs*) override {
    if (name.getIdentifierInfo()->getName() != "__global__" || !invalid_.empty()) return;
    std::optional<int> line = diagnostics_.line_of(sources_, sources_.getExpansionLoc(name.getLocation()));
    if (line && unit_.source_map.locate(*line).text == SourceText::kBody)
      invalid_.push_back(diagnostics_.at(sources_, name.getLocation(), kWholeKernelMessage));
  }

 private:
  const KernelUnit& unit_;
  clang::SourceManager& sources_;
  const DiagnosticCollector& diagnostics_;
  std::vector<Diagnostic>& invalid_;
};

// Accepts the headers of Metal, CUDA and MLX wherever they are included. Their declarations are already in scope.
class KnownHeaders : public clang::PPCallbacks {
 public:
  KnownHeaders(Dialect dialect, clang::Preprocessor& preprocessor, const DiagnosticCollector& diagnostics,
               std::vector<Diagnostic>& unsupported)
      : dialect_(dialect), preprocessor_(preprocessor), diagnostics_(diagnostics), unsupported_(unsupported) {}

  // The front end has replaced the caller's names of existing files. Any other file that Clang finds is Kiln's own and
  // must not be included by the caller.
  void InclusionDirective(clang::SourceLocation hash, const clang::Token&, llvm::StringRef name, bool,
                          clang::CharSourceRange range, clang::OptionalFileEntryRef file, llvm::StringRef,
                          llvm::StringRef, const clang::Module*, bool, clang::SrcMgr::CharacteristicKind) override {
    if (!include_.empty())
      unsupported_.push_back(diagnostics_.at(preprocessor_.getSourceManager(), hash,
                                             concat("'#include <", name.str(), ">': this header is not supported",
                                                    dialect_ == Dialect::kCuda ? " on the CPU" : "")));
    include_.clear();
    if (file && !included_index(name) && diagnostics_.line_of(preprocessor_.getSourceManager(), hash))
      preprocessor_.Diag(range.getBegin(), clang::diag::err_pp_file_not_found) << name;
  }

  bool FileNotFound(llvm::StringRef name) override {
    if (dialect_ == Dialect::kCuda) {
      if (is_known_cuda_header(name)) return true;
      if (!is_unsupported_cuda_header(name)) return false;
      include_ = name.str();
      return true;
    }
    if (name.starts_with("metal_") || name.starts_with("simd/")) return true;
    if (name == "mlx/backend/metal/kernels/utils.h" || name == "utils.h" ||
        name == "mlx/backend/metal/kernels/bf16.h" || name == "mlx/backend/metal/kernels/complex.h" ||
        name == "mlx/backend/metal/kernels/defines.h")
      return true;
    if (name.starts_with("mlx/") || name.starts_with("MetalPerformancePrimitives/")) {
      include_ = name.str();
      return true;
    }
    return false;
  }

 private:
  const Dialect dialect_;
  clang::Preprocessor& preprocessor_;
  const DiagnosticCollector& diagnostics_;
  std::vector<Diagnostic>& unsupported_;
  std::string include_;
};

// Turns `#pragma METAL fp …` into `#pragma clang fp …`. Other Metal pragmas concern only Apple's compiler.
class MetalPragma : public clang::PragmaHandler {
 public:
  MetalPragma() : clang::PragmaHandler("METAL") {}

  void HandlePragma(clang::Preprocessor& preprocessor, clang::PragmaIntroducer, clang::Token& first) override {
    clang::Token token;
    preprocessor.LexUnexpandedToken(token);
    bool is_fp = token.is(clang::tok::identifier) && token.getIdentifierInfo()->getName() == "fp";
    std::string text = "\"clang ";
    for (; token.isNot(clang::tok::eod); preprocessor.LexUnexpandedToken(token))
      text += preprocessor.getSpelling(token) + " ";
    text += "\"";
    if (!is_fp) return;
    // _Pragma("clang fp …"), which the preprocessor reads next
    auto tokens = std::make_unique<clang::Token[]>(4);
    auto make = [&](size_t i, clang::tok::TokenKind kind) {
      tokens[i].startToken();
      tokens[i].setKind(kind);
      tokens[i].setLocation(first.getLocation());
      tokens[i].setLength(1);
    };
    make(0, clang::tok::identifier);
    tokens[0].setIdentifierInfo(preprocessor.getIdentifierInfo("_Pragma"));
    make(1, clang::tok::l_paren);
    make(2, clang::tok::string_literal);
    preprocessor.CreateString(text, tokens[2], first.getLocation(), first.getLocation());
    make(3, clang::tok::r_paren);
    preprocessor.EnterTokenStream(std::move(tokens), 4, /*DisableMacroExpansion=*/false, /*IsReinject=*/false);
  }
};

// The text of the function after the kernel that connects it to an engine.
std::string entry_text(const KernelUnit& unit) {
  std::vector<std::string> parameters, arguments;
  for (size_t i = 0; i < unit.parameters.size(); ++i) {
    const KernelParameter& parameter = unit.parameters[i];
    parameters.push_back(concat("void* __restrict __kiln_p", i, ", long __kiln_first", i, ", long __kiln_end", i));
    // These types of CUDA's parameters are MLX's.
    const std::string& element = parameter.element;
    bool is_mlx =
        unit.dialect == Dialect::kCuda && (element == "Shape" || element == "Strides" || element == "complex64_t");
    std::string pointer =
        concat("(", parameter.is_written() ? "" : "const ", is_mlx ? "mlx::core::cu::" : "", element, "*)__kiln_p", i);
    // CUDA's shapes, strides and ranks are passed by value.
    bool is_value =
        unit.dialect == Dialect::kCuda && parameter.role != ParameterRole::kInput && !parameter.is_written();
    arguments.push_back(parameter.by_reference || is_value ? concat("*", pointer) : pointer);
  }
  for (uint8_t index : unit.attributes) arguments.push_back(concat("__kiln::", kAttributes[index].name, "()"));
  parameters.push_back("void* __kiln_thread");
  return concat("extern \"C\" void ", kBodyFunction, "(", join(parameters, ", "), ") {\n  ", unit.entry, "(",
                join(arguments, ", "), ");\n}\n");
}

std::string main_text(const KernelUnit& unit) {
  std::string text = text_before_kernel(unit);
  if (unit.math_mode == MathMode::kFast) text += "#define __FAST_MATH__ 1\n";
  text += concat(kBeginDeclarations, "#include \"", kernel_file(unit), "\"\n");
  text += entry_text(unit);
  return text;
}

// Opens the embedded device library, as if Clang had parsed its text.
void read_precompiled_library(clang::CompilerInstance& instance) {
  instance.createPCHExternalASTSource(kPrecompiledFile, clang::DisableValidationForModuleKind::All,
                                      /*AllowPCHWithCompilerErrors=*/false, /*DeserializationListener=*/nullptr,
                                      /*OwnDeserializationListener=*/false);
  if (!instance.getASTContext().getExternalSource()) throw InternalError("the precompiled device library is damaged");
}

// Preprocesses, rewrites and parses the text. Clang's ParseAST connects the preprocessor to the parser directly; here
// the token rewriter runs between them.
bool parse(clang::CompilerInstance& instance, clang::CodeGenerator& generator, const KernelUnit& unit,
           const DiagnosticCollector& diagnostics, std::vector<Diagnostic>& invalid,
           std::vector<Diagnostic>& unsupported) {
  clang::Preprocessor& preprocessor = instance.getPreprocessor();
  ThreadgroupVariables consumer(generator, unit, diagnostics, invalid, unsupported);
  clang::Sema sema(preprocessor, instance.getASTContext(), consumer);
  clang::Parser parser(preprocessor, sema, /*SkipFunctionBodies=*/false);  // registers the pragma handlers
  if (unit.dialect == Dialect::kMetal) preprocessor.AddPragmaHandler(new MetalPragma);
  preprocessor.addPPCallbacks(std::make_unique<KnownHeaders>(unit.dialect, preprocessor, diagnostics, unsupported));
  auto owned_limit = std::make_unique<ExpansionLimit>(preprocessor);
  const ExpansionLimit& limit = *owned_limit;
  preprocessor.addPPCallbacks(std::move(owned_limit));
  if (unit.dialect == Dialect::kCuda)
    preprocessor.addPPCallbacks(
        std::make_unique<WholeKernels>(unit, instance.getSourceManager(), diagnostics, invalid));

  if (clang::ExternalASTSource* library = instance.getASTContext().getExternalSource())
    library->StartTranslationUnit(&generator);
  // Clang warns of some comments (`//< like this`) while it lexes, and needs to know the enclosing declaration.
  sema.CurContext = instance.getASTContext().getTranslationUnitDecl();
  preprocessor.EnterMainSourceFile();
  std::vector<clang::Token> tokens;
  std::optional<clang::SourceLocation> exceeded;
  size_t refused = 0;  // before the last token
  do {
    refused = unsupported.size();
    preprocessor.Lex(tokens.emplace_back());
    exceeded = limit.exceeded();
    if (!exceeded && tokens.size() > kMaxTokens) exceeded = tokens.back().getLocation();
  } while (!exceeded && tokens.back().isNot(clang::tok::eof));
  if (exceeded) {
    unsupported.resize(refused);
    invalid.push_back(diagnostics.at(instance.getSourceManager(), *exceeded,
                                     concat("macros and included files make more than ", kMaxTokens, " tokens")));
    return false;
  }
  sema.CurContext = nullptr;  // as the parser expects it
  // After an unterminated comment or conditional, tokens are missing, and the rewriter's errors would not name the
  // cause.
  if (instance.getDiagnostics().hasErrorOccurred() || !invalid.empty()) return false;

  RewriteResult rewritten = rewrite_tokens(std::move(tokens), unit, preprocessor, diagnostics);
  invalid = std::move(rewritten.invalid);
  for (Diagnostic& d : rewritten.unsupported) unsupported.push_back(std::move(d));
  if (!invalid.empty() || !unsupported.empty() || instance.getDiagnostics().hasErrorOccurred()) return false;

  consumer.set_parser(sema, rewritten.tokens);
  auto stream = std::make_unique<clang::Token[]>(rewritten.tokens.size());
  std::copy(rewritten.tokens.begin(), rewritten.tokens.end(), stream.get());
  preprocessor.EnterTokenStream(std::move(stream), rewritten.tokens.size(), /*DisableMacroExpansion=*/true,
                                /*IsReinject=*/false);
  parser.Initialize();
  clang::Parser::DeclGroupPtrTy group;
  clang::Sema::ModuleImportState import_state;
  for (bool end = parser.ParseFirstTopLevelDecl(group, import_state); !end;
       end = parser.ParseTopLevelDecl(group, import_state))
    if (group && !consumer.HandleTopLevelDecl(group.get())) return false;
  for (clang::Decl* weak : sema.WeakTopLevelDecls()) consumer.HandleTopLevelDecl(clang::DeclGroupRef(weak));
  consumer.HandleTranslationUnit(instance.getASTContext());
  if (!instance.getDiagnostics().hasErrorOccurred() && invalid.empty() && unsupported.empty())
    unsupported = consumer.take_huge_variables();
  return !instance.getDiagnostics().hasErrorOccurred() && invalid.empty() && unsupported.empty() &&
         !diagnostics.has_unsupported();
}

const clang::NamedDecl* declaration_of(const llvm::GlobalValue& value, clang::CodeGenerator& generator) {
  return llvm::dyn_cast_or_null<clang::NamedDecl>(generator.GetDeclForMangledName(value.getName()));
}

// Reports functions that the kernel declares and calls but does not define.
void find_undefined(const llvm::Module& module, clang::CodeGenerator& generator, clang::CompilerInstance& instance,
                    const DiagnosticCollector& diagnostics, std::vector<Diagnostic>& invalid) {
  for (const llvm::Function& function : module) {
    if (!function.isDeclaration() || function.isIntrinsic() || function.getName().starts_with("__kiln")) continue;
    const clang::NamedDecl* declaration = declaration_of(function, generator);
    invalid.push_back(
        diagnostics.at(instance.getSourceManager(), declaration ? declaration->getLocation() : clang::SourceLocation(),
                       concat("'", declaration ? declaration->getNameAsString() : function.getName().str(),
                              "' is used but not defined")));
  }
}

// Refuses functions that call themselves, directly or through others, because every call is inlined later.
void refuse_recursion(llvm::Module& module, clang::CodeGenerator& generator, clang::CompilerInstance& instance,
                      const DiagnosticCollector& diagnostics, std::vector<Diagnostic>& unsupported) {
  llvm::CallGraph calls(module);
  for (auto cycle = llvm::scc_begin(&calls); !cycle.isAtEnd(); ++cycle) {
    if (!cycle.hasCycle()) continue;
    std::vector<const clang::NamedDecl*> members;
    for (const llvm::CallGraphNode* node : *cycle)
      if (const llvm::Function* function = node->getFunction())
        if (const clang::NamedDecl* declaration = declaration_of(*function, generator)) members.push_back(declaration);
    if (members.empty()) throw InternalError("a recursive function has no declaration");
    clang::SourceManager& sources = instance.getSourceManager();
    const clang::NamedDecl* first = *std::min_element(members.begin(), members.end(), [&](auto* a, auto* b) {
      return sources.isBeforeInTranslationUnit(a->getLocation(), b->getLocation());
    });
    unsupported.push_back(diagnostics.at(sources, first->getLocation(),
                                         concat("'", first->getNameAsString(), "': recursion is not supported")));
  }
}

// Refuses variables that outlive a thread and are neither constant nor in threadgroup memory. Metal has none, and
// CUDA's would have to live as long as the program.
void refuse_mutable_variables(const llvm::Module& module, Dialect dialect, clang::CodeGenerator& generator,
                              clang::CompilerInstance& instance, const DiagnosticCollector& diagnostics,
                              std::vector<Diagnostic>& unsupported) {
  for (const llvm::GlobalVariable& global : module.globals()) {
    if (global.isConstant() || global.hasSection()) continue;
    const auto* variable = llvm::dyn_cast_or_null<clang::VarDecl>(declaration_of(global, generator));
    if (!variable) continue;
    bool is_const = variable->getType().isConstant(instance.getASTContext());
    // The first thread to reach a static local variable would initialise it. Global constructors are evaluated later
    // (`lowering/constant_initializers.h`).
    if (is_const && !variable->isStaticLocal()) continue;
    const char* reason =
        is_const ? "': a static variable of a function must have a value that is known while compiling"
        : dialect == Dialect::kMetal
            ? "': a static variable must be constant or in threadgroup memory"
            : "': on the CPU a variable outside of functions must be `const`, `__constant__` or `__shared__`";
    Diagnostic diagnostic = diagnostics.at(instance.getSourceManager(), variable->getLocation(),
                                           concat("'", variable->getNameAsString(), reason));
    if (diagnostic.line > 0) unsupported.push_back(std::move(diagnostic));
  }
}

template <typename Predicate>
const clang::VarDecl* first_variable(const clang::Stmt* statement, Predicate predicate) {
  if (!statement) return nullptr;
  if (const auto* declarations = llvm::dyn_cast<clang::DeclStmt>(statement))
    for (const clang::Decl* declaration : declarations->decls())
      if (const auto* variable = llvm::dyn_cast<clang::VarDecl>(declaration); variable && predicate(*variable))
        return variable;
  for (const clang::Stmt* child : statement->children())
    if (const clang::VarDecl* variable = first_variable(child, predicate)) return variable;
  return nullptr;
}

template <typename Predicate>
const clang::CallExpr* first_call(const clang::Stmt* statement, Predicate predicate) {
  if (!statement) return nullptr;
  if (const auto* call = llvm::dyn_cast<clang::CallExpr>(statement); call && predicate(*call)) return call;
  for (const clang::Stmt* child : statement->children())
    if (const clang::CallExpr* call = first_call(child, predicate)) return call;
  return nullptr;
}

bool allocates(const clang::CallExpr& call) {
  switch (call.getBuiltinCallee()) {
    case clang::Builtin::BI__builtin_alloca:
    case clang::Builtin::BI__builtin_alloca_uninitialized:
    case clang::Builtin::BI__builtin_alloca_with_align:
    case clang::Builtin::BI__builtin_alloca_with_align_uninitialized: return true;
    default: return false;
  }
}

// Reports `extern __shared__` arrays of a kernel that is given no dynamic shared memory.
void find_missing_memory(const llvm::Module& module, clang::CodeGenerator& generator, clang::CompilerInstance& instance,
                         const DiagnosticCollector& diagnostics, std::vector<Diagnostic>& invalid) {
  for (const llvm::GlobalVariable& global : module.globals()) {
    if (!global.isDeclaration() || global.getSection() != kThreadgroupSection) continue;
    const clang::NamedDecl* variable = declaration_of(global, generator);
    invalid.push_back(
        diagnostics.at(instance.getSourceManager(), variable ? variable->getLocation() : clang::SourceLocation(),
                       concat("'", variable ? variable->getNameAsString() : global.getName().str(),
                              "' has no memory: `shared_memory`, the bytes of `extern __shared__` arrays, is 0")));
  }
}

// Refuses memory whose size or lifetime is known only when the kernel runs. It comes from Clang's extensions of C++,
// not from Metal. Clang's own warning cannot be an error while warnings are off.
void refuse_dynamic_memory(const llvm::Module& module, clang::CodeGenerator& generator,
                           clang::CompilerInstance& instance, const DiagnosticCollector& diagnostics,
                           std::vector<Diagnostic>& invalid) {
  for (const llvm::Function& function : module) {
    auto is_dynamic = [](const llvm::Instruction& instruction) {
      const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&instruction);
      return variable && !variable->isStaticAlloca();
    };
    if (llvm::none_of(llvm::instructions(function), is_dynamic)) continue;
    const auto* declaration = llvm::dyn_cast_or_null<clang::FunctionDecl>(declaration_of(function, generator));
    const clang::Stmt* statements = declaration ? declaration->getBody() : nullptr;
    const clang::VarDecl* array = first_variable(
        statements, [](const clang::VarDecl& variable) { return variable.getType()->isVariablyModifiedType(); });
    const clang::CallExpr* call = first_call(statements, allocates);
    clang::SourceLocation location = array         ? array->getLocation()
                                     : call        ? call->getBeginLoc()
                                     : declaration ? declaration->getLocation()
                                                   : clang::SourceLocation();
    invalid.push_back(
        diagnostics.at(instance.getSourceManager(), location,
                       array ? concat("'", array->getNameAsString(), "': an array's length must be constant")
                             : "private memory must be variables of constant size"));
  }
}

// Refuses very large variables, since the time and memory of passes grow with a variable's size. A smaller variable
// that exceeds private memory may still be promoted to registers; the final `private_bytes` are checked at the end.
void refuse_large_variables(const llvm::Module& module, clang::CodeGenerator& generator,
                            clang::CompilerInstance& instance, const DiagnosticCollector& diagnostics,
                            std::vector<Diagnostic>& unsupported) {
  const llvm::DataLayout& layout = module.getDataLayout();
  for (const llvm::Function& function : module) {
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      const auto* memory = llvm::dyn_cast<llvm::AllocaInst>(&instruction);
      if (!memory || !memory->isStaticAlloca()) continue;
      uint64_t bytes = layout.getTypeAllocSize(memory->getAllocatedType()).getFixedValue();
      if (bytes <= kMaxVariableBytes) continue;
      const auto* declaration = llvm::dyn_cast_or_null<clang::FunctionDecl>(declaration_of(function, generator));
      clang::ASTContext& context = instance.getASTContext();
      const clang::VarDecl* variable =
          declaration
              ? first_variable(declaration->getBody(),
                               [&](const clang::VarDecl& candidate) {
                                 clang::QualType type = candidate.getType();
                                 return candidate.hasLocalStorage() && type->isConstantSizeType() &&
                                        static_cast<uint64_t>(context.getTypeSizeInChars(type).getQuantity()) == bytes;
                               })
              : nullptr;
      clang::SourceLocation location = variable      ? variable->getLocation()
                                       : declaration ? declaration->getLocation()
                                                     : clang::SourceLocation();
      unsupported.push_back(
          diagnostics.at(instance.getSourceManager(), location,
                         too_large(variable ? concat("'", variable->getNameAsString(), "'") : "a value", bytes)));
      return;
    }
  }
}

Diagnostic find_indirect_call(const llvm::Module& module, clang::CodeGenerator& generator,
                              clang::CompilerInstance& instance, const DiagnosticCollector& diagnostics) {
  Diagnostic diagnostic;
  diagnostic.message = "calls through pointers to functions are not supported";
  for (const llvm::Function& function : module) {
    auto is_indirect = [](const llvm::Instruction& instruction) {
      const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      return call && call->isIndirectCall();
    };
    if (llvm::none_of(llvm::instructions(function), is_indirect)) continue;
    const auto* declaration = llvm::dyn_cast_or_null<clang::FunctionDecl>(declaration_of(function, generator));
    auto has_no_callee = [](const clang::CallExpr& call) { return !call.getDirectCallee(); };
    const clang::CallExpr* call = declaration ? first_call(declaration->getBody(), has_no_callee) : nullptr;
    if (!call) continue;
    Diagnostic located = diagnostics.at(instance.getSourceManager(), call->getBeginLoc(), diagnostic.message);
    if (located.line > 0) return located;
  }
  return diagnostic;
}

}  // namespace

FrontendResult run_clang(const KernelUnit& unit, const std::string& triple, const std::string& cpu,
                         llvm::LLVMContext& context, LineTables line_tables) {
  // Clang would instantiate deeply nested templates on a new thread, through which no exception can propagate. It does
  // so only after it has noted the bottom of the stack, which Kiln skips: this stack is large (`core/job_threads.h`).
  FrontendResult result;
  DiagnosticCollector collector(unit);
  std::vector<Diagnostic> invalid, unsupported;
  {
    clang::CompilerInstance instance;
    // Destructors of its parts would look at frames of the parser.
    const auto free_syntax_tree = [&] {
      if (instance.hasASTContext()) instance.getASTContext().getAllocator().Reset();
    };
    const WhenAbandoned abandoned(free_syntax_tree);
    instance.createDiagnostics(&collector, /*ShouldOwnClient=*/false);
    std::vector<std::string> arguments = clang_arguments(unit.dialect, unit.math_mode, triple, cpu);
    for (std::string& warning : warning_arguments()) arguments.push_back(std::move(warning));
    if (line_tables == LineTables::kMade)
      arguments.insert(arguments.end(), {"-debug-info-kind=line-tables-only", "-dwarf-version=5"});
    arguments.insert(arguments.end(), {"-x", "c++", "-include-pch", kPrecompiledFile, kMainFile});
    set_arguments(instance, arguments);
    instance.getCodeGenOpts().DiscardValueNames = context.shouldDiscardValueNames();
    if (!instance.createTarget()) throw InternalError("Clang has no such target: " + triple + ", " + cpu);

    std::string umbrella = device_library_umbrella(unit.dialect);
    auto files = library_files(umbrella);
    std::string main = main_text(unit);
    std::string_view library = precompiled_device_library(unit.dialect);
    files->addFileNoOwn(kMainFile, 0, llvm::MemoryBufferRef(main, kMainFile));
    std::string kernel = with_included_names(unit.text, unit.inclusions);
    files->addFileNoOwn(kernel_file(unit), 0, llvm::MemoryBufferRef(kernel, kernel_file(unit)));
    for (size_t i = 0; i < unit.included_files.size(); ++i) {
      const IncludedFile& file = unit.included_files[i];
      std::string text = concat("#line ", unit.source_map.included_first_lines[i], "\n",
                                with_included_names(file.text, file.inclusions));
      files->addFile(included_name(i), 0, llvm::MemoryBuffer::getMemBufferCopy(text, included_name(i)));
    }
    files->addFileNoOwn(kPrecompiledFile, 0, llvm::MemoryBufferRef({library.data(), library.size()}, kPrecompiledFile));
    instance.createFileManager(files);
    instance.createSourceManager(instance.getFileManager());
    if (!instance.InitializeSourceManager(instance.getFrontendOpts().Inputs[0]))
      throw InternalError("Clang does not find its main file");
    instance.createPreprocessor(clang::TU_Complete);
    collector.BeginSourceFile(instance.getLangOpts(), &instance.getPreprocessor());
    instance.createASTContext();
    read_precompiled_library(instance);

    std::unique_ptr<clang::CodeGenerator> generator(clang::CreateLLVMCodeGen(
        instance.getDiagnostics(), unit.name, &instance.getVirtualFileSystem(), instance.getHeaderSearchOpts(),
        instance.getPreprocessorOpts(), instance.getCodeGenOpts(), context));
    generator->Initialize(instance.getASTContext());
    bool parsed = parse(instance, *generator, unit, collector, invalid, unsupported);
    if (parsed) {
      llvm::Module& module = *generator->GetModule();
      find_undefined(module, *generator, instance, collector, invalid);
      if (unit.dynamic_memory_bytes == 0) find_missing_memory(module, *generator, instance, collector, invalid);
      refuse_dynamic_memory(module, *generator, instance, collector, invalid);
      refuse_large_variables(module, *generator, instance, collector, unsupported);
      refuse_recursion(module, *generator, instance, collector, unsupported);
      refuse_mutable_variables(module, unit.dialect, *generator, instance, collector, unsupported);
      result.indirect_call = find_indirect_call(module, *generator, instance, collector);
      if (invalid.empty() && unsupported.empty()) result.module.reset(generator->ReleaseModule());
    }
    collector.EndSourceFile();
  }
  result.log = collector.take_log();
  if (result.module) {
    result.diagnostics = collector.take_warnings();
    return result;
  }
  for (Diagnostic& d : collector.take_unsupported()) unsupported.push_back(std::move(d));
  if (!unsupported.empty()) {
    result.status = CompileStatus::kUnsupported;
    result.diagnostics = std::move(unsupported);
    return result;
  }
  result.status = CompileStatus::kInvalid;
  result.diagnostics = std::move(invalid);
  for (Diagnostic& d : collector.take()) result.diagnostics.push_back(std::move(d));
  return result;
}

Diagnostic diagnostic_at(const llvm::Instruction& instruction, const KernelUnit& unit, std::string message) {
  return diagnostic_at(instruction.getDebugLoc().get(), unit, std::move(message));
}

Diagnostic diagnostic_at(const llvm::DILocation* location, const KernelUnit& unit, std::string message) {
  for (const llvm::DILocation* at = location; at; at = at->getInlinedAt()) {
    llvm::StringRef file = at->getFilename();
    file.consume_front("./");
    // Line numbers of included files follow those of the kernel's text (`run_clang`).
    if (at->getLine() == 0 || (file != kernel_file(unit) && !included_index(file))) continue;
    Diagnostic diagnostic = diagnostic_at(unit, static_cast<int>(at->getLine()), message);
    if (diagnostic.text == SourceText::kGenerated) continue;
    diagnostic.column = static_cast<int>(at->getColumn());
    return diagnostic;
  }
  Diagnostic unlocated;
  unlocated.message = std::move(message);
  return unlocated;
}

}  // namespace kiln
