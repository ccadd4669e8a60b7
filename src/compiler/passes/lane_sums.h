// Sums of a simdgroup's lanes that are wanted as one number.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

/// With AVX2 a simdgroup is four registers. Adding lanes at distances 1, 2, … up takes a permutation and an addition of
/// each register at each distance, though half of the lanes would do for the next. Puts the sums of two registers into
/// one instead: 15 instructions rather than 27, and the same sums.
void add_lanes_by_pairs(llvm::Module& module);

}  // namespace kiln
