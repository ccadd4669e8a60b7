// Puts what several branches lead to before the waits of those that go on.
//
// Threads come together there to exchange values, so it stays one. A way that nobody takes leads from its ends on to
// where the others go: as far up from the wait as nothing leads to it, since that would be a cycle. What is computed
// between the branches and that place is undefined on such a way.
//
// Where a branch and the wait are in one loop, an iteration is put in order: before the wait, or, where those at the
// branch have waited in this iteration, before the next one. What is behind the loop is not made a part of it where
// threads exchange values in it, as those that leave in different iterations do so together.
//
// Not all has to come before each wait:
//
// * Who waits at an exchange that others come to behind the wait keeps them from passing it: they would wait at an
//   instance that is earlier, and not all of the simdgroup would. That is a fault, which is told elsewhere or not.
// * What leads to such an exchange others join, as threads that part meet again. So there is no order.
// * What others come to behind the wait, and leads to no exchange, they need not have in common with those that leave:
//   it is code that was made one because it is the same. Those that leave get a copy.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Instructions.h>

#include "compiler/analysis/barrier_uniformity.h"

namespace kiln {

/// Of what is behind the branch's n-th way, by which nobody comes to a wait, all that leads to instructions of which
/// `matters` holds, for each of the `waits` that it holds for. Copies at most as many instructions as the number says,
/// and takes them off. Returns whether it could; then define_uses() is missing.
bool put_tail_first(llvm::BranchInst& branch, unsigned way, const Blocks& waits, size_t& may_be_copied,
                    llvm::function_ref<bool(llvm::BasicBlock& wait, const llvm::Instruction&)> matters);

/// Values that are not defined on all ways to their uses any more get phis, which are poison on the others.
void define_uses(llvm::Function& function);

}  // namespace kiln
