// Vectors of conditions become one condition for each component.
//
// Metal's `all(at >= 0) && all(at < size)` compares vectors, and its booleans are bytes in memory and in arguments.
// What LLVM leaves of that is a vector of booleans that is extended to bytes, reinterpreted as a vector of bits, and
// read bit by bit. PTX has no vectors of bytes: each is shifted into a word and out again, some ten instructions for
// each component. And LLVM does not merge the branches on what it computes like that.
//
// Each condition that is read from such a vector is computed from its component's operands instead, back to where
// components come from: loads, calls, phis.
//
// Rejected: LLVM's Scalarizer for all vectors, which loses the instructions for pairs of halves.
//
// Complexity: linear; a component is computed once.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Returns whether there were any.
bool split_vector_conditions(llvm::Function& function);

}  // namespace kiln
