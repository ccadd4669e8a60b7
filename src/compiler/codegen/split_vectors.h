// Splits a block's vectors of 32 lanes into vectors of one register each.
//
// LLVM splits vectors itself, but instruction by instruction, which scatters the code of one register over the block.
#pragma once

#include <llvm/IR/BasicBlock.h>
#include <llvm/IR/Function.h>

#include "compiler/ir/vector_isa.h"

namespace kiln {

/// Vectors of 32-bit elements or of i1, and shuffles of them, are split. Other instructions get operands that are
/// concatenated from registers, and their results are split for users that are split.
void split_wide_vectors(llvm::BasicBlock& block, const VectorIsa& vector_isa);

/// Splits stores of several registers into stores of one each, from the first to the last. LLVM emits them in reverse
/// order: where they do not begin at cache lines, the lines that two of them share are written less well.
void split_stores_in_order(llvm::Function& function, const VectorIsa& vector_isa);

}  // namespace kiln
