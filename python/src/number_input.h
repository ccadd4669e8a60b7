// Numbers of Python among a call's inputs.
#pragma once

#include <Python.h>

#include <cstddef>
#include <optional>

#include "array_library.h"
#include "kiln/dtype.h"

namespace kiln::python {

// A number as the bytes of one element.
struct NumberInput {
  Dtype dtype;
  alignas(8) std::byte bytes[8];
};

/// The number that the object is: a bool, an int or what has an `__index__`, a float, a complex. Nothing where it is
/// none. Throws ValueError, for an int that 64 bits do not hold. Where it returns nothing a Python error may be set, by
/// which an `__index__` has failed.
std::optional<NumberInput> read_number_input(PyObject* object, const ArgumentName& name);

}  // namespace kiln::python
