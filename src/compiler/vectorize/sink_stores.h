// Stores at the ends of a divergent branch's sides become one store at its join.
//
//     if (c) y[k] = a; else y[k] = b;
//
// If several lanes have the same `k`, their order decides. One store instruction writes in lane order: the highest lane
// wins, as if the threads ran one after the other. Two of them write side after side, in the order in which structuring
// happens to lay out the sides. So the stores become one store of a phi, which also saves a masked store.
//
// The pass sinks stores of one type to the same object if their addresses are the same expression, or if one is
// computed from memory, such as a neighbor's index: such a store is a scatter in any case, and its address becomes a
// phi as well. An address that depends only on a counter or the thread's position is left alone, since lanes do not
// collide there. After the store its side must not access the object again. The pass sinks nothing if threads execute a
// collective or wait between the branch and the join: others may read by then what has been stored.
//
// This does not preserve the order of threads in general. Two stores of one side, or of two branches, each run for all
// lanes before the next one, and so do iterations of a loop (docs/design/meaning.md).
//
// Rejected: SimplifyCFG's sinking of common instructions. It takes loads, arithmetic and addresses too, whose phis hide
// from the widener that lanes access consecutive elements.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

namespace kiln {

/// Returns whether the function has changed; its analyses must be invalidated then. Branches have two successors.
bool sink_stores(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace kiln
