// Launches that PyTorch's dispatcher makes, of programs that PyTorch has traced (adapters/torch_operator.h).
#pragma once

#include <string>

#include "python_object.h"

namespace kiln::python {

/// Implements the operator, which Python has defined. False where PyTorch is too old for that.
bool let_torch_launch();

/// The exception, as Python knows it, that a launch of this thread has thrown, of which PyTorch has raised an error
/// with such a message; None where it is none.
nanobind::object take_torch_error(const std::string& message);

}  // namespace kiln::python
