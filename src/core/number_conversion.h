// Numbers of one type as the bits of another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kiln/dtype.h"
#include "kiln/element.h"

namespace kiln {

/// The half nearest to `value`, ties to even; its bits.
uint16_t to_half_bits(float value);

/// The value of a half, exactly.
float from_half_bits(uint16_t bits);

/// The bfloat nearest to `value`, ties to even; its bits.
uint16_t to_bfloat_bits(float value);

/// `value` as one element of `dtype`, in the first size_of(dtype) bytes. Integer dtypes round towards zero and
/// saturate, integers too: -1 as uint8 is 0, not 255. A NaN becomes 0 there; bool is whether it is not 0; a complex
/// number has no imaginary part.
std::array<std::byte, 8> element_bytes(Dtype dtype, Number value);

}  // namespace kiln
