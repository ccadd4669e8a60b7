// The C library's functions of doubles that CUDA bodies call (device/cuda/c_functions.h).
#pragma once

#include <string_view>

namespace kiln {

/// Null for other names.
const void* find_c_function(std::string_view name);

}  // namespace kiln
