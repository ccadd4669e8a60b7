// Numbers among a call's inputs: Python's and NumPy's scalars.
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

/// Whether the object is a scalar of NumPy's, or of a package that adds types to NumPy's, such as ml_dtypes.
bool is_numpy_scalar(PyObject* object);

/// The number that the object is: a bool, an int or an object with an `__index__`, a float, a complex; or a NumPy
/// scalar, which keeps its dtype. numpy.float64, which is a float, stays float64 if `keeps_float64`, else it becomes
/// float32, and numpy.complex128 becomes complex64.
///
/// Nothing for any other object. Throws ValueError for an int that 64 bits do not hold. Where it returns nothing a
/// Python error may be set, by which an `__index__` has failed.
std::optional<NumberInput> read_number_input(PyObject* object, const ArgumentName& name, bool keeps_float64);

}  // namespace kiln::python
