// A way's own copy of what is behind it, so that what others do there too may be changed for those who take this way.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/BasicBlock.h>
#include <llvm/IR/Instructions.h>

#include <utility>

#include "compiler/passes/block_sets.h"

namespace kiln {

/// All blocks to which a way leads from `start`, it included, as the first.
BlockList behind(llvm::BasicBlock& start);

/// From one block to another.
using Way = std::pair<llvm::BasicBlock*, llvm::BasicBlock*>;

/// Lets ways into the blocks lead to a copy of them, which nothing else leads to. The copies are in the order of
/// `blocks`. What nothing leads to any more stays.
BlockList copy_for(llvm::ArrayRef<Way> ways, const BlockList& blocks);

/// The same for a branch's n-th way and all that is behind it.
BlockList copy_behind(llvm::BranchInst& branch, unsigned way);

}  // namespace kiln
