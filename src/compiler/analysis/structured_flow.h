// Divergent control flow of a simdgroup, structured so that two rules suffice: a divergent branch has one side, which
// joins at its other successor; a divergent loop has one exit, at its latch.
#pragma once

#include <llvm/ADT/DenseSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

#include <string>

#include "compiler/analysis/divergence.h"

namespace kiln {

// The passes that structurize control flow, for ThreadAnalyses::run.
inline constexpr const char* kStructuring =
    "early-cse,lower-switch,loop(loop-rotate),mergereturn,fix-irreducible,loop-simplify,unify-loop-exits,"
    "structurizecfg,sroa<preserve-cfg>,early-cse,loop-simplify,lcssa";

class StructuredFlow {
 public:
  StructuredFlow(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

  bool is_divergent(const llvm::Value* value) const { return divergent_.contains(value); }
  bool is_divergent_branch(const llvm::BasicBlock& block) const;
  bool is_divergent_loop(const llvm::Loop& loop) const;

  /// What violates the two rules, or nothing.
  std::string check_structure(llvm::Function& function) const;

  /// The successor at which both sides of a divergent branch join; null if there is none.
  llvm::BasicBlock* join_of(llvm::BranchInst& branch) const;

 private:
  void find_divergent(llvm::Function& function, const Divergence& divergence);

  llvm::LoopInfo& loops_;
  llvm::PostDominatorTree& post_dominators_;
  llvm::DenseSet<const llvm::Value*> divergent_;
};

}  // namespace kiln
