#include "core/log.h"

#include <unistd.h>

#include <array>
#include <cerrno>
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
  } catch (const std::exception&) {
    // There is no memory for the line. What it would have told goes on.
  }
}

std::string in_milliseconds(double ms) {
  std::array<char, 64> digits{};
  // The process's locale may have a comma.
  const auto thousandths = static_cast<long long>(ms * 1000 + 0.5);
  std::snprintf(digits.data(), digits.size(), "%lld.%03lld ms", thousandths / 1000, thousandths % 1000);
  return digits.data();
}

}  // namespace kiln
