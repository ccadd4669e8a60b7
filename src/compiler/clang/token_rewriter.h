// Rewrites Metal's tokens to C++'s.
//
// The rewriter works on tokens of Clang's preprocessor, after macro expansion and before parsing. It never changes
// text: every token keeps its location in the caller's text, so messages are right to the column, also inside macros,
// and macro expansions are rewritten like written-out text. (Rejected: rewriting text. It would have to expand macros
// itself, shifts columns, and cannot match a storage class from one macro with a declarator from another.)
//
// Little is left to rewrite, because the device library and Clang's options handle the rest:
//   * attributes in [[…]] that only Metal has are dropped;
//   * `device` and `thread` are dropped, `constant` becomes `const`, `threadgroup` becomes an attribute of the type
//     (`compiler/clang/threadgroup_variables.h`);
//   * declarations that were overloads by address space only, and have become equal, are merged; if their bodies differ
//     they are refused;
//   * literals get suffixes that Clang knows (`1.5h`), or become bit casts (`1.5bf`).
//
// CUDA's tokens are already C++'s: only `__shared__` and `__grid_constant__` are rewritten.
//
// In both dialects, if the unit mentions convergent operations, marks are put around loops (see
// `lowering/convergence_points.h`).
#pragma once

#include <clang/Lex/Token.h>

#include <string>
#include <vector>

#include "compiler/clang/diagnostics.h"
#include "core/kernel_unit.h"

namespace clang {
class Preprocessor;
}

namespace kiln {

// The error for a `kernel` or `__global__` function in the body.
inline constexpr const char* kWholeKernelMessage =
    "the body is a whole kernel; give only what its braces hold: Kiln writes the signature from `input_names` and "
    "`output_names`";

struct RewriteResult {
  std::vector<clang::Token> tokens;     // ends with eof
  std::vector<Diagnostic> invalid;      // errors in the text, such as brackets that do not match
  std::vector<Diagnostic> unsupported;  // constructs that are valid in the dialect but not supported
};

/// Rewrites the tokens of the unit's text and its included files. Other tokens (the device library's) are unchanged.
RewriteResult rewrite_tokens(std::vector<clang::Token> tokens, const KernelUnit& unit,
                             clang::Preprocessor& preprocessor, const DiagnosticCollector& diagnostics);

/// Whether the unit mentions a convergent operation: a function at which threads wait for one another.
bool mentions_convergent_operations(const KernelUnit& unit);

}  // namespace kiln
