// Ways that nobody takes, and of which only widen() knows it. Structuring lays out what a way leads to behind what it
// comes from, so such a way is an order, and makes a loop of what it closes.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/BasicBlock.h>
#include <llvm/IR/Instructions.h>

#include "compiler/ir/block_sets.h"

namespace kiln {

// `i1 __kiln_never()` is false.
inline constexpr const char* kNeverFunction = "__kiln_never";

/// Adds one before the instruction, whose block it splits, and returns the block that it comes from. Phis of `to` get
/// no value for that.
llvm::BasicBlock& add_ordering_edge(llvm::Instruction& before, llvm::BasicBlock& to);

/// Adds one from each end of the blocks, before a return and on a way out of them that is taken. Phis of `to` get
/// poison.
void add_ordering_edges(const BlockList& blocks, llvm::BasicBlock& to);

/// Whether the block ends in such a way, the first, and another.
bool has_ordering_edge(const llvm::BasicBlock& block);

/// Whether somebody may go there.
bool is_real_edge(const llvm::BasicBlock& from, const llvm::BasicBlock& to);

/// The blocks to which somebody may come from `start`, it included, through blocks of which `passes` holds.
BlockList reachable_from(
    llvm::BasicBlock& start,
    llvm::function_ref<bool(llvm::BasicBlock&)> passes = [](llvm::BasicBlock&) { return true; });

}  // namespace kiln
