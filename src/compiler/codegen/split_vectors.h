// Vectors of 32 lanes, in a block, as vectors of a register each.
//
// LLVM cuts vectors itself, but instruction by instruction: what belongs to one register is then all over the block.
#pragma once

#include <llvm/IR/BasicBlock.h>
#include <llvm/IR/Function.h>

namespace kiln {

/// `lanes` of 32 bits are a register. What is cut is what has elements of 32 bits or truths, and permutations of it;
/// the rest is put together from registers, and taken apart, where that meets this.
void split_wide_vectors(llvm::BasicBlock& block, unsigned lanes);

/// Stores of several registers become stores of one each, from the first to the last. LLVM makes them the other way
/// round: where they do not begin at cache lines, those that two of them share are written less well.
void order_stores(llvm::Function& function, unsigned register_bytes);

}  // namespace kiln
