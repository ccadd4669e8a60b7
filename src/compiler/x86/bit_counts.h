// Counts of bits of vectors of 32-bit and 64-bit integers.
//
// Problem: AVX2 and the first AVX-512 processors count no bits. LLVM looks up the counts of half bytes, adds two to a
// byte's, and adds the bytes of each number, which takes longer than the rest.
//
// Idea: counts are mostly summed, as in distances of bit strings. A sum of counts is one of bytes first: up to 31 of
// them fit into a byte. So the bytes of a number are added once for all. Of 32-bit numbers that is two multiplications
// of adjacent pairs by 1, where LLVM unpacks, adds to 64 bits and packs.
//
// Rejected: an addition without carry of several words before the counts are looked up (Harley and Seal), which pays
// for long runs of words in one loop.
//
// Complexity: linear in the function's instructions.
#pragma once

#include <llvm/IR/Function.h>

#include "compiler/ir/vector_isa.h"

namespace kiln {

/// Returns whether the function has changed.
bool count_bits_in_bytes(llvm::Function& function, const VectorIsa& vector_isa);

}  // namespace kiln
