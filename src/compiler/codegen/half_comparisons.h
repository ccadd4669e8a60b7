// Comparisons of vectors of halves, and their minimum and maximum, in 16-bit integers.
//
// Without arithmetic of halves a processor compares them as floats: for 32 lanes two registers are converted to four,
// compared, and the masks put together again, which is most of the work of a max-pooling or a ReLU of halves. Numbers
// compare like integers, though: `x < 0 ? 0x8000 - x : x` of a half's bits is in the order of the numbers, with 0 and
// -0 as one. Adding 0x3ff makes positive NaNs wrap, so that all NaNs are less than the numbers; subtracting 0x400 makes
// negative NaNs wrap, so that they are greater. One of the two gives a comparison what IEEE asks for a NaN, as long as
// at most one operand may be one, and the min/max idiom (min_max_idiom.h) even for two: the result is one of the NaNs.
//
// Rejected: keeping halves as floats from one comparison to the next. It helps chains, not single comparisons, and
// takes twice the registers.
#pragma once

#include <llvm/IR/Module.h>

#include "compiler/ir/vector_isa.h"

namespace kiln {

/// Runs before selects of halves become integers (lowering/small_floats.h). Comparisons of two values of which both may
/// be NaNs stay, and those of values that are converted to floats anyway. Linear in the code.
void compare_halves_as_integers(llvm::Module& module, const VectorIsa& vector_isa);

}  // namespace kiln
