// CuPy's arrays, which lie on NVIDIA's GPUs.
#pragma once

#include <memory>

#include "array_library.h"

namespace kiln::python {

/// For a process that has imported CuPy.
std::unique_ptr<ArrayLibrary> make_cupy_library();

}  // namespace kiln::python
