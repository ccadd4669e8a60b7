// Sets of blocks.
#pragma once

#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/BasicBlock.h>
#include <llvm/IR/CFG.h>

namespace kiln {

using Blocks = llvm::SmallPtrSet<const llvm::BasicBlock*, 32>;

/// In insertion order.
using BlockList = llvm::SmallSetVector<llvm::BasicBlock*, 8>;

/// The blocks reachable from the end of this one, up to the join of all paths (`join`), if one is given.
inline Blocks blocks_after(const llvm::BasicBlock& block, const llvm::BasicBlock* join = nullptr) {
  Blocks seen;
  llvm::SmallVector<const llvm::BasicBlock*> work{&block};
  while (!work.empty())
    for (const llvm::BasicBlock* next : llvm::successors(work.pop_back_val()))
      if (next != join && seen.insert(next).second) work.push_back(next);
  return seen;
}

}  // namespace kiln
