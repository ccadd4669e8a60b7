// Diagnostics as text, in the form that users know from compilers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/kernel_unit.h"
#include "kiln/compilation.h"
#include "kiln/error.h"

namespace kiln {

/// "source", "header", "generated" or "included".
std::string_view name_of(SourceText text);
/// "error", "warning" or "note".
std::string_view name_of(Severity severity);

/// "source:3:12: error: use of undeclared identifier 'elme'", the caller's line, and a caret below the column. What
/// comes from a file begins with its path.
std::string render(const Diagnostic& diagnostic);

/// "source:3: prefetch: not in this loop: it is in another loop"; without the position where none is known.
std::string render(const CompileRemark& remark);

/// An error at a line of the unit's text or of a file that it includes, numbered as core/source_map.h says.
Diagnostic diagnostic_at(const KernelUnit& unit, int generated_line, std::string message);

/// The message of an UnsupportedError.
std::string unsupported_message(const KernelUnit& unit, const Diagnostic& diagnostic);

/// The message of a CompileError: the first error rendered, and how many more there are.
std::string summarize(std::string_view interface_name, std::string_view kernel_name,
                      const std::vector<Diagnostic>& diagnostics);

}  // namespace kiln
