// PyTorch's tensors, on the CPU and on NVIDIA's GPUs.
#pragma once

#include <memory>

#include "device_library.h"

namespace kiln::python {

/// For a process that has imported PyTorch.
std::unique_ptr<DeviceLibrary> make_torch_library();

}  // namespace kiln::python
