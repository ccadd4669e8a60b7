// Kernels over MLX's arrays: these functions have the parameters and the result of those in <mlx/fast.h>.
//
// A call adds one node to MLX's graph; it is compiled and run when it is evaluated. Link `kiln::mlx`, which is built
// for one version of MLX.
// With `using namespace kiln` the name `mlx` means two namespaces: write `::mlx::core` then.
#pragma once

#if __cplusplus < 202002L
#error "Kiln's headers are written in C++20: compile with -std=c++20"
#endif

#include <mlx/fast.h>

#include <string>
#include <vector>

#include "kiln/error.h"

namespace kiln::mlx {

/// mlx::core::fast::metal_kernel, run by Kiln. This function and the returned function throw ValueError for a wrong
/// argument (a std::invalid_argument, as MLX throws); evaluation throws CompileError, UnsupportedError and DeviceError.
/// On a stream of MLX's CUDA back end the kernel runs on the GPU. A device or stream of a GPU that MLX does not have
/// means the CPU; with KILN_STRICT_DEVICE=1 it is an UnsupportedError.
///
/// A body that writes an input through a cast writes it in place, as on a Mac, with a warning to stderr, one for each
/// kernel. The input must not overlap another array of the call (ValueError when it is evaluated). If it is not
/// row-contiguous, a copy is written unless `ensure_row_contiguous` is false.
::mlx::core::fast::CustomKernelFunction metal_kernel(const std::string& name,
                                                     const std::vector<std::string>& input_names,
                                                     const std::vector<std::string>& output_names,
                                                     const std::string& source, const std::string& header = "",
                                                     bool ensure_row_contiguous = true, bool atomic_outputs = false,
                                                     const ::mlx::core::CompileOptions& compile_options = {});

/// mlx::core::fast::cuda_kernel, run by Kiln on CPU streams and on streams of MLX's CUDA back end, with the same
/// errors.
::mlx::core::fast::CustomKernelFunction cuda_kernel(const std::string& name,
                                                    const std::vector<std::string>& input_names,
                                                    const std::vector<std::string>& output_names,
                                                    const std::string& source, const std::string& header = "",
                                                    bool ensure_row_contiguous = true, int shared_memory = 0);

}  // namespace kiln::mlx
