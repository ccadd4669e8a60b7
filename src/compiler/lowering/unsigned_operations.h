// Makes signed operations on numbers that are never negative unsigned, and drops comparisons with a constant that are
// decided.
//
// Bodies count in `int`: `int x = thread_position_in_grid.x`. A signed division rounds towards zero, so `x / 2` of a
// number of any sign is a shift with a correction, and the engines do not recognize that neighbors share an element
// (affine_lanes.h). LLVM would find the sign of a value that it knows the range of, but it adds flags as well, which do
// not hold in lanes without a thread. Here only the operation changes: such a lane gets another number, which
// nothing uses.
//
//   sdiv x, y    udiv x, y       x and y are not negative
//   srem x, y    urem x, y
//   ashr x, y    lshr x, y       x is not negative
//   icmp x, c    true or false   a signed comparison that all numbers of x's range answer alike; or icmp c, x
//
// Ranges: interval analysis (analysis/value_ranges.h), made where there is such an operation. Linear in the function,
// and for each operation in its expression of a limited depth.
#pragma once

#include <llvm/IR/Function.h>

#include "compiler/ir/thread_ranges.h"

namespace kiln {

/// Of a thread's body, with everything inlined and its variables promoted. Returns whether anything has changed.
bool use_unsigned_operations(llvm::Function& body, const ThreadLimits& limits);

}  // namespace kiln
