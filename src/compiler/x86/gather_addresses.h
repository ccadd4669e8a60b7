// Gathers and scatters in the form that x86 has instructions for: a base, and a vector of indices with a sign.
//
// Problem: instruction selection finds base and indices only if the address is computed in the block of the access,
// from a base and one index; otherwise it computes vectors of whole addresses. Indices of 32 bits take half the
// instructions of those of 64, but the processor extends them by their sign, and positions are unsigned.
//
// Idea: each gather and scatter gets an address of its own, computed just before it. An unsigned index becomes a signed
// one where the access's mask says that it is below 2^31, as a bounds check of threadgroup memory does: lanes that are
// masked off access nothing.
//
// Rejected: doing it where accesses are widened. LLVM's passes would merge the addresses of two blocks again.
//
// Complexity: linear in the accesses; of each, the few instructions of its address and mask are looked at.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Returns whether the function has changed.
bool split_gather_addresses(llvm::Function& function);

}  // namespace kiln
