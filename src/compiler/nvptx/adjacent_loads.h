// Guarded loads of adjacent elements become one load of a vector.
//
// LLVM makes vectors of adjacent loads when it writes PTX, but not of predicated ones, which are inline assembly then.
// A product of matrices in threadgroup memory, whose loops are unrolled, is bound by the number of loads: it takes
// twice as long with single ones. Loads of a row of a tile mostly have one guard (guard_indices.h), so the whole vector
// does.
//
// The pass merges loads of one basic block with the same condition, whose addresses are constant distances from one
// base, whose lowest address is aligned to the vector's size, and between which nothing writes to memory. The vector is
// loaded where the first of them was.
//
// Rejected: merging loads whose guards differ. The vector would be in bounds only where all are, and the rest would
// need the single loads as well.
//
// Complexity: for each write to memory, the groups of its basic block; and sorting the loads of a group.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// `function` has pointers with the address spaces that are known, and guards that are selects of addresses.
/// predicate_accesses() must follow. Returns whether loads were merged.
bool merge_adjacent_loads(llvm::Function& function);

}  // namespace kiln
