// NumPy's arrays. Calls run at once.
#pragma once

#include <memory>

#include "array_library.h"

namespace kiln::python {

/// Imports NumPy if nobody has. Throws a Python error where it is not installed.
std::unique_ptr<ArrayLibrary> make_numpy_library();

}  // namespace kiln::python
