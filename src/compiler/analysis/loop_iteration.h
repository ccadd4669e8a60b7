// What is known of one iteration of a loop that counts.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

namespace kiln {

/// Iterations of a loop over a threadgroup's simdgroups.
inline constexpr unsigned kMostSimdgroups = 32;

/// What counts a loop's iterations from 0; null where nothing does.
llvm::PHINode* number_of(const llvm::Loop& loop, llvm::ScalarEvolution& evolution);

/// Whether a loop accesses the place of one of its stores otherwise.
bool is_accessed_otherwise(const llvm::Loop& loop, const llvm::StoreInst& store, llvm::AAResults& aliases);

/// What a loop computes in one iteration, whose number it is given.
class LoopIteration {
 public:
  LoopIteration(const llvm::Loop& loop, llvm::PHINode& number, unsigned iteration);

  /// If arithmetic makes a constant of it; else null.
  llvm::Constant* constant(llvm::Value* value);

  /// Whether few instructions of arithmetic that may be done at any time make it from the number and from what the loop
  /// does not change.
  bool can_be_computed(const llvm::Value* value);

  /// Such a value, outside of the loop.
  llvm::Value* computed(llvm::Value* value, llvm::IRBuilderBase& builder);

 private:
  const llvm::Loop& loop_;
  llvm::DenseMap<const llvm::Value*, llvm::Value*> values_;
  llvm::DenseMap<const llvm::Value*, llvm::Constant*> constants_;  // null: none
  llvm::DenseMap<const llvm::Value*, bool> can_be_computed_;
};

}  // namespace kiln
