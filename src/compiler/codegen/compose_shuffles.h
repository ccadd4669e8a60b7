// Slices of wide vectors, and shuffles of them, become one shuffle of each register.
//
// Problem: a load of threadgroup memory becomes a slice of the vectors that were stored there, as lanes 9 to 24 of 32,
// of which a permutation takes two for a row of 8 threads each. LLVM builds a slice that does not begin at a multiple
// of its length from single elements. GVN's slices are worse: shifts of integers of 1024 bits.
//
// Idea: follow each element through shuffles, slices and bitcasts to the vector that it comes from, and emit what is
// needed of each register there. What is a permutation of a slice takes one instruction if it comes from one register,
// or from two where an instruction permutes two.
//
// Rejected: composing all shuffles. Permutations within 16 bytes need no register of indices, and networks, as of a
// transpose, share their first steps.
//
// Complexity: linear in the elements of all shuffles.
#pragma once

#include <llvm/IR/Function.h>

#include "compiler/ir/vector_isa.h"

namespace kiln {

/// Of elements of 4 and 8 bytes. Returns whether anything has changed. Steps that are unused then are left for others
/// to remove.
bool compose_shuffles(llvm::Function& function, const VectorIsa& isa);

}  // namespace kiln
