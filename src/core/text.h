// Small helpers for building and splitting text.
#pragma once

#include <cstddef>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// The parts, each as `operator<<` prints it, one after the other.
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

/// The lines of `text` without their line ends ("\n" or "\r\n"). A final line end does not begin another line.
std::vector<std::string_view> split_lines(std::string_view text);

/// Where the text ceases to be UTF-8, in bytes, if it does.
std::optional<size_t> first_invalid_utf8(std::string_view text);

/// "a, b, c"
std::string join(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace kiln
