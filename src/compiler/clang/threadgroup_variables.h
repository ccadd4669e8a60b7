// Which variables lie in threadgroup memory, as Clang's parser and types tell.
//
// Problem. Metal's `threadgroup` qualifies a type: in `threadgroup float *p, t[64]` the array lies in threadgroup
// memory and `p` is each thread's own. The type may be defined in the declaration, named by an alias, or depend on a
// template's parameters, so that no pattern of tokens tells which declarator declares what. CUDA's `__shared__` belongs
// to the variables of a declaration instead, whatever their types.
//
// Idea. The token rewriter replaces both words by GNU attributes, which Clang accepts wherever a word of a declaration
// may stand:
//   * `threadgroup` becomes `__attribute__((noderef))`, the one attribute of Clang's that GNU syntax puts on any type
//     as sugar: types keep their identity, so that overloads, templates and `this` are not affected, and typedefs,
//     alias templates and template instantiations carry it along. What else the attribute means to Clang are warnings,
//     which are off.
//   * `__shared__` becomes `__attribute__((__kiln_shared__))`, an attribute of Kiln's own on declarations.
//   * `#pragma clang attribute` puts a second attribute of Kiln's own on all variables, members and functions of the
//     caller's text. Clang calls its handler when it knows a declaration's type and before it sees any use of it; that
//     is where Clang itself makes CUDA's shared variables static. The handler asks whether the type's outermost level
//     (for arrays their elements') is qualified.
// An attribute that Clang does not apply to a type is an error at its line (`compiler/clang/diagnostics.cpp`), so that
// no qualifier is dropped.
//
// Rejected: Clang's address spaces, which are part of a type's identity (member functions, and every function of the
// device library that takes a pointer, would have to exist once for each); patterns of tokens, which came before;
// changing variables after a function has been parsed, when lambdas have captured them.
//
// The same walk finds private variables of which Clang is to make no code, since it would write out an initial value of
// 2 GiB or more.
//
// Complexity: constant work for each declaration, and one walk over the declarations (not the statements) of each
// function.
#pragma once

#include <clang/AST/ASTConsumer.h>
#include <clang/AST/DeclCXX.h>
#include <clang/CodeGen/ModuleBuilder.h>
#include <clang/Lex/Token.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/clang/diagnostics.h"
#include "core/kernel_unit.h"

namespace clang {
class CXXConstructorDecl;
class Sema;
}  // namespace clang

namespace kiln {

// Names of attributes, between `__attribute__((` and `))`.
inline constexpr const char* kThreadgroupAttribute = "noderef";
inline constexpr const char* kSharedAttribute = "__kiln_shared__";

// What stands before the caller's text. Nothing stands behind it: a macro's call that is not closed would swallow that.
// ThreadgroupVariables ends it once Clang has parsed the last function, kBodyFunction.
inline constexpr const char* kBeginDeclarations =
    "#pragma clang attribute push (__attribute__((__kiln_declaration__)), apply_to = any(variable, field, function))\n";

/// What is said of a private variable of so many bytes.
std::string too_large(const std::string& what, uint64_t bytes);

/// Stands between Clang's parser and its code generator, to which it passes everything on.
class ThreadgroupVariables final : public clang::ASTConsumer {
 public:
  /// Errors are appended to `invalid` and `unsupported`. All references must outlive this object.
  ThreadgroupVariables(clang::CodeGenerator& generator, const KernelUnit& unit, const DiagnosticCollector& diagnostics,
                       std::vector<Diagnostic>& invalid, std::vector<Diagnostic>& unsupported);

  /// `tokens` are those that the parser gets; they must outlive this object.
  void set_parser(clang::Sema& sema, const std::vector<clang::Token>& tokens);

  /// Called by the handlers of Kiln's attributes.
  void handle_declaration(clang::Decl& declaration);
  void handle_shared(clang::Decl& declaration, clang::SourceLocation attribute);

  /// Refusals of private variables, wherever they are, that are so large that no code was made of anything behind them.
  /// An error of another kind comes first.
  std::vector<Diagnostic> take_huge_variables() { return std::move(huge_); }

  bool HandleTopLevelDecl(clang::DeclGroupRef group) override;
  void HandleInlineFunctionDefinition(clang::FunctionDecl* function) override;
  void HandleInterestingDecl(clang::DeclGroupRef group) override { generator_.HandleInterestingDecl(group); }
  void HandleTranslationUnit(clang::ASTContext& context) override {
    if (!has_errors()) generator_.HandleTranslationUnit(context);
  }
  void HandleTagDeclDefinition(clang::TagDecl* tag) override { generator_.HandleTagDeclDefinition(tag); }
  void HandleTagDeclRequiredDefinition(const clang::TagDecl* tag) override {
    generator_.HandleTagDeclRequiredDefinition(tag);
  }
  void HandleCXXImplicitFunctionInstantiation(clang::FunctionDecl* function) override {
    generator_.HandleCXXImplicitFunctionInstantiation(function);
  }
  void CompleteTentativeDefinition(clang::VarDecl* variable) override {
    generator_.CompleteTentativeDefinition(variable);
  }
  void CompleteExternalDeclaration(clang::DeclaratorDecl* declaration) override {
    generator_.CompleteExternalDeclaration(declaration);
  }
  void AssignInheritanceModel(clang::CXXRecordDecl* record) override { generator_.AssignInheritanceModel(record); }
  void HandleCXXStaticMemberVarInstantiation(clang::VarDecl* variable) override {
    generator_.HandleCXXStaticMemberVarInstantiation(variable);
  }
  void HandleVTable(clang::CXXRecordDecl* record) override { generator_.HandleVTable(record); }
  bool shouldSkipFunctionBody(clang::Decl*) override { return false; }

 private:
  void make_threadgroup(clang::VarDecl& variable, clang::SourceLocation where) const;
  void check_declaration(clang::Decl& declaration);
  void check_declarations(clang::DeclContext& context);
  void check_variable(clang::VarDecl& variable);
  void check_size(const clang::VarDecl& variable);
  bool has_errors() const { return !invalid_.empty() || !unsupported_.empty() || !huge_.empty(); }
  void check_captures(const clang::CXXRecordDecl& lambda);
  std::string what_constructor_does(clang::CXXConstructorDecl& constructor, clang::SourceLocation where) const;
  bool does_nothing(const clang::CXXDestructorDecl& destructor) const;
  bool is_callers(clang::SourceLocation location) const;
  clang::SourceLocation initializer_of(const clang::VarDecl& variable) const;
  void refuse(clang::SourceLocation where, std::string message);
  std::string variable_kind() const;

  clang::CodeGenerator& generator_;
  const KernelUnit& unit_;
  const DiagnosticCollector& diagnostics_;
  std::vector<Diagnostic>& invalid_;
  std::vector<Diagnostic>& unsupported_;
  std::vector<Diagnostic> huge_;
  clang::Sema* sema_ = nullptr;
  const std::vector<clang::Token>* tokens_ = nullptr;
  bool is_ended_ = false;  // kBeginDeclarations
  std::set<const clang::Decl*> checked_;
  std::set<const clang::VarDecl*> late_;  // made static when lambdas may have captured them
};

}  // namespace kiln
