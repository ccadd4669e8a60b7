// The CPU as a target: images mapped into the process, threadgroups spread over the cores.
#pragma once

#include <memory>

#include "targets/target.h"

namespace kiln {

std::unique_ptr<Target> make_cpu_target();

/// Bytes of threadgroup memory that a kernel may have here.
inline constexpr size_t kCpuThreadgroupMemoryLimit = 1 << 20;

}  // namespace kiln
