// A way's own copy of what is behind it, so that what others do there too may be changed for those who take this way.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/BasicBlock.h>

#include <utility>

#include "compiler/ir/block_sets.h"

namespace kiln {

/// From one block to another.
using Way = std::pair<llvm::BasicBlock*, llvm::BasicBlock*>;

/// Lets ways into the blocks lead to a copy of them, which nothing else leads to. The copies are in the order of
/// `blocks`. What nothing leads to any more stays.
BlockList copy_for(llvm::ArrayRef<Way> ways, const BlockList& blocks);

}  // namespace kiln
