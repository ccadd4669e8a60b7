// PyTorch's operator `kiln::launch` in C++. What Python adds to it (shapes without elements, batches, gradients) is in
// python/kiln/_functions_torch.py.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/kernel_object.h"
#include "runtime/launch_text.h"

namespace kiln {

// `text` says what is launched (runtime/launch_text.h), `sizes` how large it is: the dimensions of each output, then
// the grid's three and the threadgroup's three. Tensors are on one device, which is that of the outputs.
inline constexpr const char* kTorchOperatorSchema = "launch(str text, Tensor[] inputs, SymInt[] sizes) -> Tensor[]";

// What a text says. Kept for the life of the process.
struct TorchLaunch {
  std::string text;
  size_t hash = 0;
  std::shared_ptr<KernelObject> kernel;
  std::vector<TemplateArgument> template_arguments;
  std::vector<LaunchText::Output> outputs;
  std::optional<Number> init_value;
  size_t sizes = 0;  // how many the operator is given
  TorchLaunch* next = nullptr;

  /// A call of that size without inputs and device. It views this launch, `given`, and `own`, which has an element for
  /// each output and is written. `given` are as many as `sizes`.
  Call call(std::span<const int64_t> given, std::span<OutputArray> own) const;
};

/// The launch of a text that has been launched or added before; else null.
const TorchLaunch* find_torch_launch(std::string_view text);

/// Whether this library has defined the operator, which is done once.
bool has_defined_torch_operator();

/// Implements the operator, which Python has defined. False where PyTorch is too old for that.
bool implement_torch_operator();

/// Has launches of this text use the kernel, which is the text's. Kept for the life of the process. Throws ValueError.
void add_torch_launch(std::string_view text, std::shared_ptr<KernelObject> kernel);

/// A function that is called with each exception of a launch before PyTorch gets it. PyTorch makes a `std::exception`
/// of it and keeps the message alone.
void set_torch_error_hook(void (*hook)(const std::exception_ptr&) noexcept);

}  // namespace kiln
