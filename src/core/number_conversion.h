// Numbers of one type as the bits of another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "kiln/dtype.h"

namespace kiln {

/// The half nearest to `value`, ties to even; its bits.
uint16_t to_half_bits(float value);

/// The bfloat nearest to `value`, ties to even; its bits.
uint16_t to_bfloat_bits(float value);

// A number as a program gave it; integers beyond 2^53 are no doubles.
using Number = std::variant<double, int64_t, uint64_t>;

/// `value` as one element of `dtype`, in the first size_of(dtype) bytes. Integer dtypes round towards zero and
/// saturate, integers too: -1 as uint8 is 0, not 255. A NaN becomes 0 there; bool is whether it is not 0; a complex
/// number has no imaginary part.
std::array<std::byte, 8> element_bytes(Dtype dtype, Number value);

}  // namespace kiln
