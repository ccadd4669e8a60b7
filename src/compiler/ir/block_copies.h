// Copies of blocks for some of their incoming edges, which may then be changed without an effect on other paths.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/BasicBlock.h>

#include <utility>

#include "compiler/ir/block_sets.h"

namespace kiln {

/// A CFG edge, from one block to another.
using Way = std::pair<llvm::BasicBlock*, llvm::BasicBlock*>;

/// Redirects edges into the blocks to a copy of the blocks that has no other predecessors. The copies are in the order
/// of `blocks`. Blocks that become unreachable stay.
BlockList copy_for(llvm::ArrayRef<Way> ways, const BlockList& blocks);

}  // namespace kiln
