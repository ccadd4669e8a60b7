// Metal's tokens as C++'s.
//
// The rewrites work on the tokens that Clang's preprocessor yields, after macros are expanded and before anything is
// parsed. Text is never changed: every token keeps its place in the caller's text, so that messages are right to the
// column, also inside macros, and what a macro makes is rewritten like what is written out. (Rewriting text was the
// alternative. It must see through macros itself, moves columns, and cannot tell a storage class that comes from one
// macro and a declarator that comes from another.)
//
// Little is left to rewrite, because the device library and Clang's options bring the rest:
//   * attributes in [[…]] that only Metal has are dropped;
//   * `device` and `thread` are dropped, `constant` becomes `const`, `threadgroup` becomes an attribute of the type
//     (`compiler/clang/threadgroup_variables.h`);
//   * declarations that were overloads in the address space only, and are the same then, are merged; where they differ
//     in more they are refused;
//   * literals get C++'s suffixes (`1.5h`, `1.5bf`);
//
// CUDA's tokens are C++'s: only `__shared__` and `__grid_constant__` are rewritten, and loops as Metal's:
//
//   * loops get marks around them where threads may wait for one another inside (see `lowering/convergence_points.h`).
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

// What a `kernel` or `__global__` function in the body means.
inline constexpr const char* kWholeKernelMessage =
    "the body is a whole kernel; give only what its braces hold: Kiln writes the signature from `input_names` and "
    "`output_names`";

struct RewriteResult {
  std::vector<clang::Token> tokens;     // ends with eof
  std::vector<Diagnostic> invalid;      // errors in the text: brackets that do not match
  std::vector<Diagnostic> unsupported;  // what is valid in the dialect but not supported
};

/// Rewrites the tokens that come from the unit's text and its included files; others (the device library's) pass
/// unchanged.
RewriteResult rewrite_tokens(std::vector<clang::Token> tokens, const KernelUnit& unit,
                             clang::Preprocessor& preprocessor, const DiagnosticCollector& diagnostics);

/// Whether the unit mentions a function at which threads wait for one another.
bool mentions_exchanges(const KernelUnit& unit);

}  // namespace kiln
