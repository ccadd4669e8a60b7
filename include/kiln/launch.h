// The arguments of a launch, and its record in the history.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/device.h"
#include "kiln/dtype.h"
#include "kiln/element.h"
#include "kiln/tensor.h"

namespace kiln {

/// Numbers of threads in x, y and z. Those that are left out are 1: `{1000}` is `{1000, 1, 1}`.
struct GridSize : std::array<int64_t, 3> {
  constexpr GridSize(int64_t x = 1, int64_t y = 1, int64_t z = 1) : array{x, y, z} {}
  constexpr GridSize(const std::array<int64_t, 3>& sizes) : array(sizes) {}
};

/// The arguments of a kernel's call.
struct KernelCall {
  /// In the order of the kernel's input names. They may overlap one another, have any strides, and lie anywhere.
  std::vector<TensorView> inputs = {};
  /// The dimensions of each output.
  std::vector<Shape> output_shapes = {};
  /// The type of each output's elements.
  std::vector<Dtype> output_dtypes = {};
  /// The number of threads in each dimension.
  GridSize grid = {1, 1, 1};
  /// The number of threads of a threadgroup in each dimension; their product is at most 1024. It is clamped to the
  /// grid, and threadgroups at the grid's edge may be smaller.
  GridSize threadgroup = {1, 1, 1};
  std::vector<std::pair<std::string, TemplateValue>> template_arguments = {};
  /// The initial value of all elements of all outputs. Integer dtypes round it towards zero and saturate. Without it,
  /// elements that the kernel does not write have unspecified values.
  std::optional<Number> init_value = {};
  /// Whether to print the generated text to the standard output.
  bool verbose = false;
  /// The device that the kernel runs on. Inputs, except numbers, and outputs are in that device's memory; for a GPU it
  /// comes from cudaMalloc or cuMemAlloc.
  Device device = {};
  /// GPU: the stream that the kernel is put on, a cudaStream_t or CUstream of the device's primary context (the one of
  /// CUDA's runtime). Null is the default stream. The call returns before the kernel has run, and the memory must stay
  /// valid until then.
  void* stream = nullptr;
};

/// One launch, as Kernel::history lists it.
struct Launch {
  std::string target;         ///< the device: "cpu", or "nvidia:0" for the first GPU
  std::string engine;         ///< "simd" or "scalar"; for a GPU the compiler, "ptx" or "nvrtc"
  std::string engine_reason;  ///< the reason for that engine
  std::string code;           ///< the origin of the machine code: "compiled", "memory", "disk" or "bundle"
  bool specialized = false;   ///< whether the code is specialized for these shapes
  std::string not_stored;     ///< if `code` is "compiled": why it is not stored on disk; empty if it is
  double compile_ms = 0;      ///< 0 unless `code` is "compiled"
  double run_ms = 0;          ///< from the start of the launch to the end of its last thread; GPU: until it is put on
                              ///< the stream
  std::array<int64_t, 3> grid{}, threadgroup{};  ///< as the call gave them
  std::vector<Dtype> input_dtypes, output_dtypes;
};

}  // namespace kiln
