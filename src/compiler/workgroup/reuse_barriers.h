// Barriers where threadgroup memory is used again.
//
// Published bodies leave out a barrier: simdgroups read what others have written, combine it (`simd_max`) and write new
// values to the same place, without waiting until the others have read the old ones. On a GPU simdgroups run side by
// side, and all have read when the first one writes, some dozens of instructions later. On the CPU one simdgroup runs
// after the other, and without a barrier each but the first would read what the one before has written. Such bodies
// have a race, by Metal's rules; but what they mean is plain, and what they give on a Mac is right.
//
// So a simdgroup function between a read and a write of one threadgroup variable gets a barrier, where all threads of
// the threadgroup come to it, or return before. A barrier more does no harm but takes time: bodies with a barrier of
// their own there get none.
//
// The scalar engine needs none: its threads wait at each simdgroup function, and all of a threadgroup come to one
// before any goes on.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// `body` is that of one thread, with exchanges and barriers as calls of the front end's functions.
void add_reuse_barriers(llvm::Function& body);

}  // namespace kiln
