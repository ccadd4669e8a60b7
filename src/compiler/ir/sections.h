// The representation of threadgroup memory in LLVM IR.
#pragma once

namespace kiln {

// The section of the global variables that stand for threadgroup memory.
inline constexpr const char* kThreadgroupSection = "kiln.threadgroup";

}  // namespace kiln
