// Orders a tail that several branches share before the barriers of the threads that continue.
//
// Threads execute convergent operations together in such a tail, so it is not duplicated. An ordering edge leads from
// each end of the tail to the code of the threads that continue. Its target is as far above the barrier as possible
// without a path from there back to the tail, which would close a cycle. Values computed between the branches and the
// target are undefined on this edge.
//
// If a branch and the barrier are in one loop, the order is that of one iteration: the tail comes before the barrier,
// or before the next iteration if the threads at the branch have passed the barrier in this one. Code after the loop
// does not become a part of it if it has convergent operations, since threads that leave in different iterations
// execute these together.
//
// Not every block has to come before each barrier:
//
// * A thread that waits at a collective which others reach after the barrier keeps them from passing the barrier: its
//   instance would be earlier, and not the whole simdgroup would wait there. That is a fault, which is reported
//   elsewhere or not at all.
// * Other threads join in blocks that lead to such a collective, as divergent threads reconverge. So there is no order.
// * Blocks that others reach after the barrier and that lead to no collective need not be shared with the threads that
//   leave: they are equal code that was merged. The threads that leave get a copy.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Instructions.h>

#include "compiler/analysis/barrier_uniformity.h"

namespace kiln {

/// Orders code after the branch's successor `successor`, from which no barrier is reached. For each of `barriers`, all
/// code that leads to instructions for which `matters` holds comes before that barrier. Copies at most `copy_budget`
/// instructions and deducts them from it. Returns whether it could; then repair_ssa() must follow.
bool order_tail_before_barriers(llvm::BranchInst& branch, unsigned successor, const Blocks& barriers,
                                size_t& copy_budget,
                                llvm::function_ref<bool(llvm::BasicBlock& barrier, const llvm::Instruction&)> matters);

/// Inserts phis for values that no longer dominate all their uses; the phis are poison on the other paths.
void repair_ssa(llvm::Function& function);

}  // namespace kiln
