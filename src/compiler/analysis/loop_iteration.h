// Values in one iteration of a counted loop.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

namespace kiln {

/// The most iterations of a loop over the simdgroups of a threadgroup.
inline constexpr unsigned kMostSimdgroups = 32;

/// The induction variable that counts iterations from 0; null if there is none.
llvm::PHINode* number_of(const llvm::Loop& loop, llvm::ScalarEvolution& evolution);

/// Whether a loop has another access to the memory that one of its stores writes.
bool has_other_access(const llvm::Loop& loop, const llvm::StoreInst& store, llvm::AAResults& aliases);

/// The values that a loop computes in the iteration with a given number.
class LoopIteration {
 public:
  LoopIteration(const llvm::Loop& loop, llvm::PHINode& number, unsigned iteration);

  /// Whether a few speculatable arithmetic instructions compute the value from the iteration number and loop
  /// invariants.
  bool can_be_computed(const llvm::Value* value);

  /// Computes such a value outside of the loop.
  llvm::Value* computed(llvm::Value* value, llvm::IRBuilderBase& builder);

 private:
  // The constant that arithmetic makes of the value; else null.
  llvm::Constant* constant(llvm::Value* value);

  const llvm::Loop& loop_;
  llvm::DenseMap<const llvm::Value*, llvm::Value*> values_;
  llvm::DenseMap<const llvm::Value*, llvm::Constant*> constants_;  // null: none
  llvm::DenseMap<const llvm::Value*, bool> can_be_computed_;
};

}  // namespace kiln
