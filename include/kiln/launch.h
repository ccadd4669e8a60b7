// What a launch is given, and what it leaves behind.
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

/// What a kernel is called with.
struct KernelCall {
  /// In the order of the kernel's input names. They may overlap one another, have any strides, and lie anywhere.
  std::vector<TensorView> inputs = {};
  /// For each output, its dimensions and the type of its elements.
  std::vector<Shape> output_shapes = {};
  std::vector<Dtype> output_dtypes = {};
  /// How many threads run, in each dimension.
  std::array<int64_t, 3> grid = {1, 1, 1};
  /// Threads of a threadgroup, in each dimension; at most 1024 together. It is clamped to the grid, and threadgroups at
  /// the grid's edge may be smaller.
  std::array<int64_t, 3> threadgroup = {1, 1, 1};
  std::vector<std::pair<std::string, TemplateValue>> template_arguments = {};
  /// What all outputs are filled with first. Integer dtypes round it towards zero and saturate. Without it, elements
  /// that the kernel does not write have unspecified values.
  std::optional<Number> init_value = {};
  /// Whether to print the generated text to the standard output.
  bool verbose = false;
  /// Where the kernel runs. The memory of inputs, but for numbers, and of outputs is that device's: of a GPU, as
  /// cudaMalloc or cuMemAlloc give it.
  Device device = {};
  /// GPU: the stream that the kernel is put on, a cudaStream_t or CUstream of the device's primary context (the one of
  /// CUDA's runtime). Null is the default stream. The call returns before the kernel has run, and the memory must stay
  /// until then.
  void* stream = nullptr;
};

/// One launch, as Kernel::history lists it.
struct Launch {
  std::string target;         ///< where it ran: "cpu", or "nvidia:0" for the first GPU
  std::string engine;         ///< how threads were run: "simd", "scalar"; GPU: who compiled, "ptx", "nvrtc"
  std::string engine_reason;  ///< why that engine
  std::string code;           ///< where the machine code came from: "compiled", "memory", "disk" or "bundle"
  bool specialized = false;   ///< whether the code was made for these shapes
  std::string not_stored;     ///< where `code` is "compiled": why it is not on disk for later; empty where it is
  double compile_ms = 0;      ///< 0 unless `code` is "compiled"
  double run_ms = 0;          ///< from the start of the launch to the end of its last thread; GPU: until it is put on
                              ///< the stream
  std::array<int64_t, 3> grid{}, threadgroup{};  ///< as the call gave them
  std::vector<Dtype> input_dtypes, output_dtypes;
};

}  // namespace kiln
