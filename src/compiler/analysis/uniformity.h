// Which values are the same in all threads of a simdgroup.
//
// Passes of LLVM's ask a target whether threads take branches differently; on x86 none do, so they are given a target
// of ours.
#pragma once

#include <llvm/Passes/PassBuilder.h>

#include "compiler/analysis/divergence.h"

namespace kiln {

// Whether the threads of a simdgroup are at one place of the code at the same time, as lanes of a vector are.
enum class Lanes { kLockstep, kIndependent };

/// Whether a value differs between the threads of a simdgroup of itself.
Difference divergence_between_threads(const llvm::Value& value, Lanes lanes);

// LLVM's analyses of one function that many threads run, and DivergenceAnalysis (analysis/divergence.h).
class ThreadAnalyses {
 public:
  explicit ThreadAnalyses(Lanes lanes = Lanes::kLockstep);
  void run(llvm::StringRef pipeline, llvm::Function& function);
  void run(llvm::FunctionPassManager& passes, llvm::Function& function);
  /// What is known of a function that something else has changed is forgotten.
  void forget(llvm::Function& function) { functions_.clear(function, function.getName()); }
  llvm::FunctionAnalysisManager& functions() { return functions_; }

 private:
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager components_;
  llvm::ModuleAnalysisManager modules_;
  llvm::PassBuilder builder_;
};

}  // namespace kiln
