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
  int index = 0;  ///< the GPU's number, as CUDA counts those that the process may use; 0 for the CPU

  bool operator==(const Device&) const = default;
};

}  // namespace kiln
