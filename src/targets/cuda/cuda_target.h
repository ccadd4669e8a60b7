// An NVIDIA GPU as a target: images become modules of the driver, launches go to the caller's streams.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "targets/target.h"

namespace kiln {

/// The GPU `index`, as the driver counts those that the process may use. Throws DeviceError where there is no driver or
/// no such GPU, UnsupportedError where the GPU is older than Kiln's code.
std::unique_ptr<Target> make_cuda_target(int index);

/// Whether this has the form of an architecture from sm_80 on: "sm_80", "sm_90a". Whether there is such a GPU the
/// compilers know.
bool is_gpu_architecture(std::string_view name);

struct CudaDeviceInfo {
  std::string name;          // "NVIDIA H200"
  std::string architecture;  // "sm_90"
  int multiprocessors = 0;
  size_t memory_bytes = 0;
};

struct CudaInfo {
  int driver_version = 0;  // 13000: for CUDA 13.0
  std::string path;        // of the driver's library
  std::vector<CudaDeviceInfo> devices;
};

/// The driver and its GPUs. Throws DeviceError where there are none.
CudaInfo cuda_info();

}  // namespace kiln
