// A strided array in memory to one whose elements follow one another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kiln {

/// `data` points to element (0, …, 0), strides are in elements of `element_bytes` bytes (1, 2, 4 or 8) and may be
/// negative or 0. `out` has room for all elements; the last dimension is fastest there.
void copy_strided(const void* data, std::span<const int64_t> shape, std::span<const int64_t> strides,
                  size_t element_bytes, void* out);

}  // namespace kiln
