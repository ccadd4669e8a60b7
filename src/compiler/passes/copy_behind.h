// A branch's way to a copy of all that is behind it, so that what others do there too may be changed for those who take
// this way.
#pragma once

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/BasicBlock.h>
#include <llvm/IR/Instructions.h>

namespace kiln {

using BlockList = llvm::SmallSetVector<llvm::BasicBlock*, 8>;

/// All blocks to which a way leads from `start`, it included, as the first.
BlockList behind(llvm::BasicBlock& start);

/// Lets the branch's n-th way lead to a copy of all that is behind it, which nothing else leads to. The copies are in
/// the order of behind(). What nothing leads to any more stays.
BlockList copy_behind(llvm::BranchInst& branch, unsigned way);

}  // namespace kiln
