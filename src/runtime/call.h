// One call of a kernel, as adapters describe it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/gpu_queue.h"
#include "core/launch_geometry.h"
#include "core/number_conversion.h"
#include "frontend/signature.h"
#include "kiln/device.h"
#include "kiln/dtype.h"

namespace kiln {

// An array that is read. Views only: whoever calls keeps them alive.
struct InputArray {
  const void* data = nullptr;
  Dtype dtype = Dtype::kFloat32;
  std::span<const int64_t> shape;
  std::span<const int64_t> strides;  // in elements; as many as dimensions
  // Not in the memory of the call's device but in this process's: one element.
  bool is_number = false;
};

// An array that is to be made.
struct OutputArray {
  Dtype dtype = Dtype::kFloat32;
  std::span<const int64_t> shape;
};

struct Call {
  std::span<const InputArray> inputs;
  std::span<const OutputArray> outputs;
  std::span<const TemplateArgument> template_arguments;
  Extent3 grid{};
  Extent3 threadgroup{};
  std::optional<Number> init_value;
  // Names of inputs and outputs where the kernel does not have them (the dictionary and class generations).
  std::span<const std::string> input_names;
  std::span<const std::string> output_names;
  // Where it runs, and where its arrays are.
  Device device{};
  void* stream = nullptr;  // of a GPU: the CUstream that it is put on
  // Of a GPU: what takes the launch in place of a stream. Then no input is copied or a number, and there is no init
  // value: whoever has the queue has done that.
  GpuQueue* queue = nullptr;
};

}  // namespace kiln
