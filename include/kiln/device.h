// Where memory is, and where kernels run.
#pragma once

#include <cstdint>

namespace kiln {

enum class DeviceKind : uint8_t {
  kCpu,
  kNvidia,  ///< an NVIDIA GPU
};

/// A device of this machine.
struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;  ///< of a GPU, as CUDA counts those that the process may use; 0 of the CPU

  bool operator==(const Device&) const = default;
};

}  // namespace kiln
