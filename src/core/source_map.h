// From a position in the generated text back to the caller's header or body, and to the files that they include.
//
// The generated text holds the header, then lines of Kiln's own, then the body, then lines of Kiln's own. Header and
// body stand in it unchanged and begin in the first column, so columns need no mapping. The lines of included files
// have the numbers behind those of the generated text, so that one number is a place.
#pragma once

#include <algorithm>
#include <vector>

#include "kiln/error.h"

namespace kiln {

struct SourcePosition {
  SourceText text = SourceText::kGenerated;
  int line = 0;     // 1-based in that text
  size_t file = 0;  // kIncluded: which of the unit's included files

  bool operator==(const SourcePosition&) const = default;
};

struct SourceMap {
  int header_lines = 0;     // lines [1, header_lines] of the generated text
  int body_first_line = 0;  // line of the generated text that holds the body's first line
  int body_lines = 0;
  std::vector<int> included_first_lines = {};  // of each included file, ascending

  SourcePosition locate(int generated_line) const {
    if (generated_line >= 1 && generated_line <= header_lines) return {SourceText::kHeader, generated_line};
    if (generated_line >= body_first_line && generated_line < body_first_line + body_lines)
      return {SourceText::kBody, generated_line - body_first_line + 1};
    auto next = std::upper_bound(included_first_lines.begin(), included_first_lines.end(), generated_line);
    if (next == included_first_lines.begin()) return {SourceText::kGenerated, generated_line};
    return {SourceText::kIncluded, generated_line - next[-1] + 1,
            static_cast<size_t>(next - included_first_lines.begin()) - 1};
  }
};

}  // namespace kiln
