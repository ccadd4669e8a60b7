// Kernels over MLX's arrays: metal_kernel() and cuda_kernel() have the parameters and the result of those in
// <mlx/fast.h>, and function() gives a kernel rules for gradients and batches.
//
// A call adds one node to MLX's graph; it is compiled and run when it is evaluated. Link `kiln::mlx`, which is built
// for one version of MLX.
// With `using namespace kiln` the name `mlx` means two namespaces: write `::mlx::core` then.
#pragma once

#if __cplusplus < 202002L
#error "Kiln's headers are written in C++20: compile with -std=c++20"
#endif

#include <mlx/fast.h>

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
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

// ---- Functions of arrays, which MLX can transform.

/// The shape and dtype of an input.
struct ArraySpec {
  ::mlx::core::Shape shape;
  ::mlx::core::Dtype dtype;
};

/// What a launch needs besides arrays.
struct FunctionLaunch {
  std::vector<::mlx::core::Shape> output_shapes;
  std::vector<::mlx::core::Dtype> output_dtypes;
  std::tuple<int, int, int> grid = {1, 1, 1};
  std::tuple<int, int, int> threadgroup = {1, 1, 1};
  std::vector<std::pair<std::string, ::mlx::core::fast::TemplateArg>> template_arguments = {};
  std::optional<float> init_value = std::nullopt;
};

/// Computes it from the inputs' shapes and dtypes, in the order of the kernel's inputs. Called when the function is
/// called and, in a graph that was compiled for any shapes, when the graph meets others.
using FunctionLaunchRule = std::function<FunctionLaunch(const std::vector<ArraySpec>& inputs)>;

/// A function of arrays, as mlx::core::grad, vmap, compile and the others take it.
using ArrayFunction = std::function<std::vector<::mlx::core::array>(const std::vector<::mlx::core::array>&)>;

/// As a vmap rule: the kernel is launched for one element of the batch after the other.
struct Sequential {};

/// As a vmap rule: the batch is one more axis of the grid, in one launch, with the bits of a launch for each element.
/// The batches' derivatives are the function's own under mlx::core::vmap. function() throws UnsupportedError with the
/// line where the body does what it would do for the whole launch and not for an element; a call throws ValueError
/// where threadgroups do not divide the grid along z.
struct GridAxis {};

/// The rules of a function, with the parameters that mlx::core::custom_function gives its rules. They compute with
/// functions of arrays and MLX's operations, and are transformed themselves for derivatives of higher order. A
/// transformation whose rule is missing is a TypeError that names both.
struct FunctionRules {
  /// (primals, cotangents, outputs) to a gradient for each input.
  std::function<std::vector<::mlx::core::array>(const std::vector<::mlx::core::array>& primals,
                                                const std::vector<::mlx::core::array>& cotangents,
                                                const std::vector<::mlx::core::array>& outputs)>
      vjp = nullptr;
  /// (primals, tangents, argnums) to a tangent for each output. `tangents` has those of the inputs in `argnums`.
  std::function<std::vector<::mlx::core::array>(const std::vector<::mlx::core::array>& primals,
                                                const std::vector<::mlx::core::array>& tangents,
                                                const std::vector<int>& argnums)>
      jvp = nullptr;
  /// (inputs, axes) to the outputs for a whole batch, and the axis of the batch in each. An axis of -1 stands for an
  /// input that all have in common. Or Sequential{}, or GridAxis{}.
  using Vmap = std::function<std::pair<std::vector<::mlx::core::array>, std::vector<int>>(
      const std::vector<::mlx::core::array>& inputs, const std::vector<int>& axes)>;
  std::variant<std::monostate, Vmap, Sequential, GridAxis> vmap = {};
};

/// A function of arrays, made of a kernel of metal_kernel() or cuda_kernel(). `launch` says how large its outputs and
/// its grid are; so the function can be transformed and compiled without shapes (`mlx::core::compile` with
/// `shapeless`). It needs no mlx::core::custom_function around it. Calls of the function throw what the kernel's calls
/// throw, and ValueError for another number of inputs than the kernel has.
///
/// Throws ValueError where the kernel is none of Kiln's, or there is no `launch`.
ArrayFunction function(const ::mlx::core::fast::CustomKernelFunction& kernel, FunctionLaunchRule launch,
                       FunctionRules rules = {}, ::mlx::core::StreamOrDevice stream = {});

}  // namespace kiln::mlx
