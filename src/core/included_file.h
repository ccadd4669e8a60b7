// Files that a kernel's text includes.
//
// They are read when the kernel is made, by the front end; a compiler sees no file system but these texts. Which file
// an
// `#include` means depends on the file in which it stands, and the texts of header and body, which may come from two
// folders, are one file to the compiler. So the front end decides, and the compiler gets each directive with a name of
// Kiln's own in the place of the one that the caller wrote. (A file system in memory with the caller's folders was the
// alternative. It cannot tell header from body, it would make folders part of what identifies a kernel, and each
// compiler resolves names in a way of its own.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// The name in one `#include` or `__has_include` of a text.
struct Inclusion {
  size_t begin = 0, end = 0;  // bytes of the text: the name with its quotes or brackets
  uint32_t file = 0;          // which of the kernel's included files it means

  bool operator==(const Inclusion&) const = default;
};

struct IncludedFile {
  std::string path;  // as messages give it
  std::string text;
  std::vector<Inclusion> inclusions;  // in the order of the text, as all of these lists

  bool operator==(const IncludedFile&) const = default;
};

// What of a kernel comes from files.
struct KernelFiles {
  std::string source_path, header_path;   // as messages give them; empty where the argument was text
  std::vector<std::string> include_dirs;  // likewise
  std::vector<Inclusion> source_inclusions, header_inclusions;
  std::vector<IncludedFile> included;

  bool operator==(const KernelFiles&) const = default;
};

/// The name by which a compiler finds an included file.
std::string included_name(size_t file);

/// Which file it is, if it is one of these names.
std::optional<size_t> included_index(std::string_view name);

/// `text` as a compiler gets it.
std::string with_included_names(std::string_view text, const std::vector<Inclusion>& inclusions);

}  // namespace kiln
