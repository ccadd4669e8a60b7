// Switches whose default cannot be reached say so at once.
//
// Problem: a switch over all values that its number can have has an unreachable default, which LowerSwitch leaves out.
// It recognizes the block that ends in `unreachable`, and not a block that leads there. LoopSimplify puts such a block
// between: the default leaves the loops around the switch, and each loop is to have an exit of its own. The branch that
// LowerSwitch then makes is one more way out of the function, with which no region holds all of it, so that
// StructurizeCFG leaves the branches at the top as they are, and the body is refused.
//
// Idea: the default becomes a block of its own with `unreachable`.
//
// Rejected: SimplifyCFG, which does this among much else, and undoes the form that earlier passes gave to loops.
//
// Complexity: linear in the switches; a default is followed over a few blocks.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Returns whether the function has changed.
bool simplify_unreachable_defaults(llvm::Function& function);

}  // namespace kiln
