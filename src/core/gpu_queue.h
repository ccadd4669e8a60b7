// Where a launch on a GPU goes that is not put on a stream: an array library may collect launches in graphs of its own
// and give those to the GPU.
#pragma once

#include <array>

namespace kiln {

// A launch as NVIDIA's driver takes it.
struct GpuLaunch {
  void* function = nullptr;  // a CUfunction; stays valid as long as the process
  std::array<unsigned, 3> threadgroups{};
  std::array<unsigned, 3> threads_per_threadgroup{};
  unsigned dynamic_bytes = 0;   // of threadgroup memory; the function may have so much
  void** parameters = nullptr;  // where each of the function's parameters lies, until add() returns
};

class GpuQueue {
 public:
  virtual ~GpuQueue() = default;

  /// Adds a launch behind those that it depends on. The context of the launch's GPU is the thread's. Throws
  /// std::runtime_error, whose text tells why it cannot.
  virtual void add(const GpuLaunch& launch) = 0;
};

}  // namespace kiln
