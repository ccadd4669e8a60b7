// Sets of blocks.
#pragma once

#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/BasicBlock.h>

namespace kiln {

using Blocks = llvm::SmallPtrSet<const llvm::BasicBlock*, 32>;

/// In the order in which they were found.
using BlockList = llvm::SmallSetVector<llvm::BasicBlock*, 8>;

}  // namespace kiln
