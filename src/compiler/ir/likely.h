// Likely branches: those that nearly always take one edge, such as a consecutive access's fast path. The widener marks
// them, and later passes may hoist their checks to version loops (versioning/loop_versioning.h).
//
// A mark is metadata of its own. Branch weights, which the branch gets too, tell the direction, because LLVM swaps them
// with the successors, and its passes put code in order by them. Rejected: taking certain weights for the mark; a
// branch of anybody else's with these weights would be one of those that passes replace by a constant.
#pragma once

#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/ProfDataUtils.h>

#include <cassert>
#include <optional>

#include "compiler/ir/metadata.h"

namespace kiln {

/// Marks a branch whose first successor is likely.
inline void mark_likely(llvm::BranchInst& branch) {
  assert(branch.isConditional());
  llvm::LLVMContext& context = branch.getContext();
  branch.setMetadata(llvm::LLVMContext::MD_prof, llvm::MDBuilder(context).createBranchWeights(1000, 1));
  branch.setMetadata(kLikely, llvm::MDNode::get(context, {}));
}

/// The likely successor, if the branch is marked. (LLVM may have swapped the successors.)
inline std::optional<unsigned> likely_successor(const llvm::BranchInst& branch) {
  uint64_t first, second;
  if (!branch.isConditional() || !branch.hasMetadata(kLikely) || !extractBranchWeights(branch, first, second) ||
      first == second)
    return std::nullopt;
  return first > second ? 0 : 1;
}

}  // namespace kiln
