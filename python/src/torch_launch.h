// Launches that PyTorch's dispatcher makes, of programs that PyTorch has traced (adapters/torch_operator.h).
#pragma once

#include "python_object.h"

namespace kiln::python {

/// Implements the operator, which Python has defined. False where PyTorch is too old for that.
bool let_torch_launch();

/// What stands in the place of a function that calls the operator with Python's values. It launches plain tensors
/// itself: the dispatcher would copy text, tensors and sizes before it calls the operator. All else it gives to
/// `dispatch`, whose errors of launches become those that Python knows; PyTorch keeps their messages alone.
nanobind::object make_torch_call(const nanobind::object& dispatch);

}  // namespace kiln::python
