// Chooses the loops that are unrolled completely on a GPU, where LLVM's own limits are for processors.
//
// A thread has up to 255 registers and no cheap stack: a private array whose index is not a constant is in local
// memory, which each access reads from the cache. A quotient or remainder is some twenty instructions, but a shift or a
// mask if its divisor is a constant. Both become known if the loop that changes the index or the divisor is unrolled.
// So such loops, and the loops around them on which their trip counts depend, are marked with `llvm.loop.unroll.full`.
//
// Short loops are unrolled completely, too: addresses of their iterations become constant distances from one another,
// and their loads are in flight together. Innermost loops of short bodies that load, with a longer constant trip count,
// are unrolled by four.
//
// The cost model counts instructions after unrolling, and registers: an array that is larger than what a thread may
// keep in registers stays in memory. Complexity: a walk over the function's loops, each instruction once for each loop
// around it.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

namespace kiln {

/// Returns whether a loop was marked. LLVM's `loop-unroll-full` unrolls them.
bool mark_loops_to_unroll(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

/// The same for short loops, completely or by four, of those that are left. LLVM's `loop-unroll` unrolls them.
bool mark_short_loops_to_unroll(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace kiln
