// MLX's CUDA back end, as far as a kernel needs it to become a node of MLX's CUDA graphs.
#pragma once

#include <mlx/array.h>
#include <mlx/stream.h>

#include <span>
#include <vector>

#include "core/gpu_queue.h"

namespace kiln {

/// Throws UnsupportedError where the libmlx.so of this process has no CUDA back end, or one of a version that Kiln does
/// not know. To be called before anything else here is.
void check_mlx_cuda();

/// Where an array's first element is in the GPU's memory; that it exists is all that is asked of the array. (Its
/// `data()` moves it to memory that the CPU reads as well.)
void* gpu_address(const ::mlx::core::array& array);

// The following are what MLX's own primitives do when they are evaluated on the thread that evaluates: they allocate,
// and add to the graph what writes the memory. They throw std::runtime_error, whose text is MLX's.

/// Gives an array, whose primitive has a stream of the GPU, memory in the order of this stream.
void allocate_on_gpu(::mlx::core::array& array);

/// The same, filled with `element`, the bytes of one element.
void fill_on_gpu(::mlx::core::array& array, std::span<const std::byte> element);

/// Keeps an array's memory until the GPU has used it: MLX gives what is free to the next node, which may run beside
/// this one.
void keep_on_gpu(const ::mlx::core::array& array, const ::mlx::core::Stream& stream);

/// A row-contiguous copy, which lives until the GPU has done what was added to the stream up to the next commit.
::mlx::core::array copy_on_gpu(const ::mlx::core::array& array, ::mlx::core::Stream stream);

// The graph of a stream as what takes a launch. Views its arrays.
class MlxGpuQueue : public GpuQueue {
 public:
  MlxGpuQueue(::mlx::core::Stream stream, const std::vector<::mlx::core::array>& inputs,
              const std::vector<::mlx::core::array>& outputs)
      : stream_(stream), inputs_(inputs), outputs_(outputs) {}
  void add(const GpuLaunch& launch) override;

 private:
  ::mlx::core::Stream stream_;
  const std::vector<::mlx::core::array>& inputs_;
  const std::vector<::mlx::core::array>& outputs_;
};

}  // namespace kiln
