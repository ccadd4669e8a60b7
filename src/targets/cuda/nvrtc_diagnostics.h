// NVRTC's log as Kiln's diagnostics, in the caller's lines.
//
// NVRTC has no other form than text: "kernel.cu(12): error: …", perhaps more lines of the message, the line of the text
// and a caret below the column.
#pragma once

#include <string_view>
#include <vector>

#include "core/kernel_unit.h"
#include "kiln/error.h"

namespace kiln {

/// The name that the unit's text has for NVRTC.
inline constexpr const char* kUnitFile = "kernel.cu";

/// What the log says, in its order. A message about another file stands where the unit's text asked for it, as far as
/// the log tells that.
std::vector<Diagnostic> read_nvrtc_log(const KernelUnit& unit, std::string_view log);

}  // namespace kiln
