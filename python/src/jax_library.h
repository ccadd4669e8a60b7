// JAX's arrays, on the CPU and on NVIDIA's GPUs.
#pragma once

#include <memory>

#include "array_library.h"

namespace kiln::python {

/// For a process that has imported JAX.
std::unique_ptr<ArrayLibrary> make_jax_library();

}  // namespace kiln::python
