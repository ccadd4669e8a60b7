// Fake CFG edges, never taken at run time; only Kiln's passes know that. StructurizeCFG orders an edge's target after
// its source, so a fake edge imposes an order (a fake back edge creates a loop). widen() and the lowering of
// collectives for GPUs remove them.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/BasicBlock.h>
#include <llvm/IR/Instructions.h>

#include "compiler/ir/block_sets.h"

namespace kiln {

/// Splits the block before the instruction, adds a fake edge there, and returns the edge's source. Phis of `to` get no
/// value for it.
llvm::BasicBlock& add_ordering_edge(llvm::Instruction& before, llvm::BasicBlock& to);

/// Adds a fake edge at each end of the blocks: before a return, and on a real edge out of them. Phis of `to` get
/// poison.
void add_ordering_edges(const BlockList& blocks, llvm::BasicBlock& to);

/// Whether the block ends in a fake edge, its first successor, and a real one.
bool has_ordering_edge(const llvm::BasicBlock& block);

/// Whether threads may take the edge.
bool is_real_edge(const llvm::BasicBlock& from, const llvm::BasicBlock& to);

/// The blocks reachable from `start` by real edges through blocks of which `passes` holds, `start` included.
BlockList reachable_from(
    llvm::BasicBlock& start,
    llvm::function_ref<bool(llvm::BasicBlock&)> passes = [](llvm::BasicBlock&) { return true; });

}  // namespace kiln
