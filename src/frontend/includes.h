// Kernels in files: the body's and the header's own, and what they include.
//
// Files are read once, when a kernel is made; everything behind this works on their texts. So what a kernel means does
// not change under it, and machine code can be identified by it.
//
// Conditionals are not evaluated: every file that a directive names is read where it is there, and one that is missing
// is an error only where the compiler's preprocessor comes to its directive.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/included_file.h"
#include "frontend/lexer.h"

namespace kiln {

// A body or a header: text or, where there is a path, what the file of that path holds.
struct TextArgument {
  std::string text = {};
  std::optional<std::string> path = {};
};

// All files of a kernel together; enough for any, and little enough to be read by mistake.
inline constexpr size_t kMostFileBytes = size_t{16} << 20;

/// Reads the files of the paths into the arguments' texts, and what they include. `"a.h"` is looked for beside the file
/// that includes it, then, as `<a.h>`, in `include_dirs` in their order; `<metal_…>` and `<simd/…>` are not looked for.
/// What is text has no folder. Throws ValueError for a path that is no text file; what it says begins with `interface`.
KernelFiles read_kernel_files(std::string_view interface, TextArgument& source, TextArgument& header,
                              std::vector<std::string> include_dirs);

// A name in an `#include`, an `#import` or a `__has_include`.
struct IncludeName {
  size_t begin = 0, end = 0;  // bytes of the text, quotes or brackets included
  bool is_quoted = false;
  std::string_view name;  // without them

  bool operator==(const IncludeName&) const = default;
};

/// Those of a text whose tokens are `tokens`. A name that a macro gives or that a line splice cuts is none of them.
std::vector<IncludeName> include_names(std::string_view text, const TokenList& tokens);

}  // namespace kiln
