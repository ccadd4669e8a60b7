#include "core/log.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>

namespace kiln {

void write_log_line(LogCategory category, std::string_view text) noexcept {
  try {
    std::string line = concat("kiln[", kLogCategories[static_cast<size_t>(category)], "]: ");
    for (char c : text) {
      const auto code = static_cast<unsigned char>(c);
      if (code >= 0x20 && code != 0x7f) {
        line += c;
        continue;
      }
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\x%02x", code);
      line += escape.data();
    }
    line += '\n';
    // What is logged must not change what its caller says of a failure.
    const int error = errno;
    while (::write(STDERR_FILENO, line.data(), line.size()) < 0 && errno == EINTR) {
    }
    errno = error;
    // NOLINTNEXTLINE(bugprone-empty-catch): that there is no memory for a line is no failure of what it tells
  } catch (const std::exception&) {
  }
}

std::string in_milliseconds(double ms) {
  std::array<char, 64> digits{};
  // The process's locale may have a comma.
  const auto thousandths = std::llround(ms * 1000);
  std::snprintf(digits.data(), digits.size(), "%lld.%03lld ms", thousandths / 1000, thousandths % 1000);
  return digits.data();
}

}  // namespace kiln
