// Gathers as AVX2's instructions.
//
// Problem: AVX2 gathers 8 words or 4 numbers of 64 bits, but LLVM takes these instructions only for processors that it
// knows to be fast at them, and expands a masked gather to a branch for each lane. A loop over lanes, which is shorter,
// takes two to five times as long as the instructions do.
//
// Idea: each gather becomes one instruction for each register of its result. They take a base and indices of 32 bits
// with a sign, or of 64 bits; an unsigned index of 32 bits gets a sign by taking 2^31 off it, which is added to the
// base. A mask is a vector of signs.
//
// Rejected: LLVM's processor feature for fast gathers. It is a property of a processor, and code is made for a level.
//
// Complexity: linear in the gathers.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Of masked gathers of elements of 4 and 8 bytes, for processors without mask registers. Where their addresses have
/// been split (x86/gather_addresses.h), indices stay narrow. Returns whether the function has changed.
bool select_gather_instructions(llvm::Function& function);

}  // namespace kiln
