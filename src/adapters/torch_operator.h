// PyTorch's operator `kiln::launch` in C++. What Python adds to it (shapes without elements, batches, gradients) is in
// python/kiln/_functions_torch.py.
#pragma once

#include <exception>
#include <memory>
#include <string_view>

#include "runtime/kernel_object.h"

namespace kiln {

// `text` says what is launched (runtime/launch_text.h), `sizes` how large it is: the dimensions of each output, then
// the grid's three and the threadgroup's three. Tensors are on one device, which is that of the outputs.
inline constexpr const char* kTorchOperatorSchema = "launch(str text, Tensor[] inputs, SymInt[] sizes) -> Tensor[]";

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
