// How threadgroup memory looks in LLVM IR.
#pragma once

namespace kiln {

// Section of the global variables that stand for threadgroup memory.
inline constexpr const char* kThreadgroupSection = "kiln.threadgroup";

}  // namespace kiln
