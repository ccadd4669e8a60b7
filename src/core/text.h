// Small helpers for building and splitting text.
#pragma once

#include <cstddef>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// The parts, each as `operator<<` prints it, one after the other. Numbers have digits only, whatever locale the
/// process has set.
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  (out << ... << parts);
  return std::move(out).str();
}

/// The lines of `text` without their line ends ("\n" or "\r\n"). A final line end does not begin another line.
std::vector<std::string_view> split_lines(std::string_view text);

/// Where the text ceases to be UTF-8, in bytes, if it does.
std::optional<size_t> first_invalid_utf8(std::string_view text);

/// The text as messages show it: exceptions' texts end at a NUL, in whose place stands a sign for it.
std::string printable(std::string_view text);

/// "a, b, c"
std::string join(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace kiln
