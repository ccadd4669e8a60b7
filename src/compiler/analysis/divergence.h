// Divergence between the threads that run a function side by side: the threads of a simdgroup, the threads of a
// threadgroup, or simdgroups.
//
// A value is divergent if it is a source of divergence, has a divergent operand, is a phi at the join of a divergent
// branch, or is used after a loop that threads leave in different iterations. Labels find the joins (Rosemann, Moll and
// Hack, "An abstract interpretation for SPMD divergence on reducible control flow graphs", 2021): each edge out of a
// divergent branch has a label, and a block that two labels reach is a join, with a label of its own. A uniform value
// is the same for all threads that reach a program point in the same iterations of the loops around it.
//
// Rejected: LLVM 19's UniformityInfo. It follows the same rules, but stops too early if a side of a branch has three
// blocks or more, and then reports a phi after the branch as uniform (llvm-project's issue 137277).
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

// How an argument or an instruction contributes to divergence.
enum class Difference {
  kSource,    // it is divergent
  kInherits,  // it is divergent if an operand is, or if a divergent branch selects it
  kNone,      // it is uniform
};

using DifferenceOf = std::function<Difference(const llvm::Value&)>;

class Divergence {
 public:
  Divergence(llvm::Function& function, const llvm::CycleInfo& cycles, const llvm::PostDominatorTree& post_dominators,
             const DifferenceOf& difference_of);

  bool is_divergent(const llvm::Value* value) const { return divergent_.contains(value); }

  /// Whether the value is divergent at this use, which may be after a loop in which the value is uniform.
  bool is_divergent_at(const llvm::Use& use) const;

  /// Whether the value is divergent, or is so after a loop around it.
  bool is_divergent_after_loops(const llvm::Value* value) const;

  bool is_divergent_branch(const llvm::BasicBlock& block) const { return branches_.contains(&block); }

 private:
  friend class DivergenceFinder;

  /// Considers the loops around the value that are not around `block`.
  bool is_divergent_after_loops(const llvm::Value* value, const llvm::BasicBlock* block) const;

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
