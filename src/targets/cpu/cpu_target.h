// The CPU as a target: images mapped into the process, threadgroups spread over the cores.
#pragma once

#include <memory>
#include <string_view>

#include "targets/target.h"

namespace kiln {

/// The CPU, whose index is 0. Throws DeviceError for another.
std::unique_ptr<Target> make_cpu_target(int index);

/// Whether this names a level of x86-64 that code is made for: "x86-64-v3".
bool is_processor_level(std::string_view name);

/// Bytes of threadgroup memory that a kernel may have here.
inline constexpr size_t kCpuThreadgroupMemoryLimit = 1 << 20;

}  // namespace kiln
