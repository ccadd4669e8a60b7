// The lines that KILN_LOG asks for, on standard error.
//
// A category that is off costs a launch one test of a bit: nothing is formatted, and what must be computed for a line
// alone is computed under is_logged(). Each line is one call of write(), so that lines of several threads, and of
// several processes that share the file, do not mix. A stream of the C or C++ library would have a lock and a buffer
// that a child inherits after `fork`.
#pragma once

#include <string_view>

#include "core/settings.h"
#include "core/text.h"

namespace kiln {

/// Whether KILN_LOG names the category. Throws as settings() does.
inline bool is_logged(LogCategory category) {
  return (settings().log_categories & (1u << static_cast<unsigned>(category))) != 0;
}

/// Writes "kiln[cache]: …" as one line, whatever the category's state. Control characters, which names of files may
/// have, become escapes. A failure to write is ignored.
void write_log_line(LogCategory category, std::string_view text) noexcept;

/// Writes the parts, as concat() does, where the category is on.
template <typename... Parts>
void log(LogCategory category, const Parts&... parts) {
  if (is_logged(category)) [[unlikely]]
    write_log_line(category, concat(parts...));
}

/// A time as log lines have it: "0.123 ms".
std::string in_milliseconds(double ms);

}  // namespace kiln
