// Likely branches: those that nearly always take one edge, such as a consecutive access's fast path. The widener marks
// them, and later passes may hoist their checks to version loops (versioning/loop_versioning.h).
#pragma once

#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/ProfDataUtils.h>

#include <optional>

namespace kiln {

inline constexpr uint32_t kLikelyWeight = 1000;

/// Marks a branch whose first successor is likely.
inline llvm::MDNode* likely_first(llvm::LLVMContext& context) {
  return llvm::MDBuilder(context).createBranchWeights(kLikelyWeight, 1);
}

/// The likely successor, if the branch is marked. (LLVM may have swapped the successors.)
inline std::optional<unsigned> likely_successor(const llvm::BranchInst& fork) {
  uint64_t first, second;
  if (!fork.isConditional() || !extractBranchWeights(fork, first, second)) return std::nullopt;
  if (first == kLikelyWeight && second == 1) return 0;
  if (first == 1 && second == kLikelyWeight) return 1;
  return std::nullopt;
}

}  // namespace kiln
