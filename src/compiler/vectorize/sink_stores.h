// Stores at the ends of the sides of a divergent branch become one store at its join.
//
//     if (c) y[k] = a; else y[k] = b;
//
// Where several lanes have the same `k`, their order decides. One store instruction writes in the order of lanes: the
// highest wins, as it does where one thread runs after the other. Two of them write side after side, in the order in
// which structuring happens to lay out the sides. So the stores are made one, of a phi, which also saves a masked
// store.
//
// Sunk are stores of one type to the same object, whose addresses are the same expression, or of which one is computed
// from memory, as the place of a neighbour is: such a store is a scatter in any case, and its address becomes a phi as
// well. What only a counter or the thread's position leads to is left alone, since lanes do not meet there. Past a
// store its side must not access the object again, and where threads exchange values or wait between the branch and the
// join, nothing is sunk: others may read by then what has been stored.
//
// This is not the order of threads for everything. Two stores of one side, or of two branches, are made one after the
// other for all lanes, and so are iterations of a loop (docs/design/meaning.md).
//
// Rejected: SimplifyCFG's sinking of common instructions. It takes loads, arithmetic and addresses too, whose phis hide
// from the widener that lanes access consecutive elements.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

namespace kiln {

/// Returns whether the function has changed; its analyses are to be forgotten then. Branches have two successors.
bool sink_stores(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace kiln
