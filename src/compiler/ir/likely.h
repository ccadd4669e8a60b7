// Forks that nearly always go one way, as where lanes access a row: the widener marks them, and passes behind it may
// ask them before, once for many (versioning/loop_versioning.h).
#pragma once

#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/ProfDataUtils.h>

#include <optional>

namespace kiln {

inline constexpr uint32_t kLikelyWeight = 1000;

/// That a fork goes to its first successor.
inline llvm::MDNode* likely_first(llvm::LLVMContext& context) {
  return llvm::MDBuilder(context).createBranchWeights(kLikelyWeight, 1);
}

/// The successor, where the fork is marked. (LLVM may have exchanged them.)
inline std::optional<unsigned> likely_successor(const llvm::BranchInst& fork) {
  uint64_t first, second;
  if (!fork.isConditional() || !extractBranchWeights(fork, first, second)) return std::nullopt;
  if (first == kLikelyWeight && second == 1) return 0;
  if (first == 1 && second == kLikelyWeight) return 1;
  return std::nullopt;
}

}  // namespace kiln
