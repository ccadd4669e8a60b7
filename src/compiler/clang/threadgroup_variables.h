// Finds the variables in threadgroup memory, from Clang's parser and types.
//
// Problem. Metal's `threadgroup` qualifies a type: in `threadgroup float *p, t[64]` the array lies in threadgroup
// memory and `p` is private to each thread. The type may be defined in the declaration, named by an alias, or depend on
// template parameters, so no token pattern can assign the qualifier to a declarator. CUDA's `__shared__` instead
// applies to the variables of a declaration, whatever their types.
//
// Idea. The token rewriter replaces both words by GNU attributes, which Clang accepts at any position of a declaration
// specifier:
//   * `threadgroup` becomes `__attribute__((noderef))`, the only Clang attribute that GNU syntax attaches to any type
//     as sugar. Types keep their identity, so overloads, templates and `this` are unaffected; typedefs, alias templates
//     and template instantiations preserve it. Its only other effect is warnings, which are disabled.
//   * `__shared__` becomes `__attribute__((__kiln_shared__))`, Kiln's own declaration attribute.
//   * `#pragma clang attribute` puts another attribute of Kiln's on all variables, members and functions of the
//     caller's text. Clang calls its handler once a declaration's type is known and before any use, the point where
//     Clang itself makes CUDA's shared variables static. The handler checks whether the outermost level of the type (of
//     an array's element type) is qualified.
// An attribute that Clang does not apply to a type is an error at its line (`compiler/clang/diagnostics.cpp`), so no
// qualifier is lost.
//
// Rejected: Clang's address spaces, which are part of a type's identity (member functions, and every function of the
// device library with a pointer parameter, would need a copy for each address space); token patterns, which an earlier
// version used; changing variables after a function has been parsed, when lambdas have already captured them.
//
// The same walk refuses huge private variables before Clang generates code, since it would write out an initial value
// of 2 GiB or more.
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

// Attribute names, as written between `__attribute__((` and `))`.
inline constexpr const char* kThreadgroupAttribute = "noderef";
/// In the device library (device/engine/thread.h): the parameter of constructors for objects in threadgroup memory.
inline constexpr const char* kThreadgroupObject = "ThreadgroupObject";
inline constexpr const char* kSharedAttribute = "__kiln_shared__";

// Text before the caller's text. There is no matching text after it, since an unclosed macro call would swallow that.
// ThreadgroupVariables pops the attribute once Clang has parsed the last function, kBodyFunction.
inline constexpr const char* kBeginDeclarations =
    "#pragma clang attribute push (__attribute__((__kiln_declaration__)), apply_to = any(variable, field, function))\n";

/// The error message for a private variable of so many bytes.
std::string too_large(const std::string& what, uint64_t bytes);

/// AST consumer between Clang's parser and its code generator; forwards everything to the generator.
class ThreadgroupVariables final : public clang::ASTConsumer {
 public:
  /// Errors are appended to `invalid` and `unsupported`. All references must outlive this object.
  ThreadgroupVariables(clang::CodeGenerator& generator, const KernelUnit& unit, const DiagnosticCollector& diagnostics,
                       std::vector<Diagnostic>& invalid, std::vector<Diagnostic>& unsupported);

  /// `tokens` are the parser's tokens; they must outlive this object.
  void set_parser(clang::Sema& sema, const std::vector<clang::Token>& tokens);

  /// Called by the handlers of Kiln's attributes.
  void handle_declaration(clang::Decl& declaration);
  void handle_shared(clang::Decl& declaration, clang::SourceLocation attribute);

  /// Errors for private variables, anywhere in the unit, that are so large that code generation stopped at them. Errors
  /// of other kinds take precedence.
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
  std::string constructor_effect(clang::CXXConstructorDecl& constructor, clang::SourceLocation where) const;
  bool does_nothing(const clang::CXXDestructorDecl& destructor) const;
  bool is_in_caller_text(clang::SourceLocation location) const;
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
  bool is_popped_ = false;  // kBeginDeclarations
  std::set<const clang::Decl*> checked_;
  std::set<const clang::VarDecl*> late_;  // made static after lambdas may have captured them
};

}  // namespace kiln
