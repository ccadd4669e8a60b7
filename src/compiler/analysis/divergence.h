// What differs between those that run a function side by side: threads of a simdgroup, threads of a threadgroup, or
// simdgroups.
//
// A value differs where it is a source of difference, where an operand differs, where ways meet that some take and
// others do not, and behind a loop that they leave in different iterations. Which blocks are such meetings is found by
// labels (Rosemann, Moll and Hack, "An abstract interpretation for SPMD divergence on reducible control flow graphs",
// 2021): each way out of a branch that differs has one, and a block to which two come is a meeting, with a label of its
// own. What is said to be the same, all have that come to a place in the same iterations of the loops around it.
//
// Rejected: LLVM 19's UniformityInfo, which follows the same rules, but stops too early where a side of a branch has
// three blocks or more, and says then that what is chosen behind it is the same for all (llvm-project's issue 137277).
#pragma once

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/CycleInfo.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PassManager.h>

#include <functional>

namespace kiln {

// What is asked of each argument and instruction.
enum class Difference {
  kSource,    // it differs
  kInherits,  // it differs where an operand does, or where it is chosen by a branch that does
  kNone,      // it never differs
};

using DifferenceOf = std::function<Difference(const llvm::Value&)>;

class Divergence {
 public:
  Divergence(llvm::Function& function, const llvm::CycleInfo& cycles, const llvm::PostDominatorTree& post_dominators,
             const DifferenceOf& difference_of);

  bool is_divergent(const llvm::Value* value) const { return divergent_.contains(value); }

  /// Whether it differs where it is used, which may be behind a loop in which it does not.
  bool is_divergent_at(const llvm::Use& use) const;

  /// Whether it differs, or does behind a loop around it.
  bool is_divergent_after_loops(const llvm::Value* value) const;

  bool is_divergent_branch(const llvm::BasicBlock& block) const { return branches_.contains(&block); }

 private:
  friend class DivergenceFinder;

  /// Of the loops around the value that are not around `where`.
  bool is_divergent_after_loops(const llvm::Value* value, const llvm::BasicBlock* where) const;

  const llvm::CycleInfo* cycles_;
  llvm::DenseSet<const llvm::Value*> divergent_;
  llvm::SmallPtrSet<const llvm::BasicBlock*, 16> branches_;
  llvm::SmallPtrSet<const llvm::Cycle*, 4> left_divergently_;  // in different iterations
};

class DivergenceAnalysis : public llvm::AnalysisInfoMixin<DivergenceAnalysis> {
 public:
  using Result = Divergence;
  explicit DivergenceAnalysis(DifferenceOf difference_of) : difference_of_(std::move(difference_of)) {}
  Result run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  friend llvm::AnalysisInfoMixin<DivergenceAnalysis>;
  static llvm::AnalysisKey Key;

  DifferenceOf difference_of_;
};

}  // namespace kiln
