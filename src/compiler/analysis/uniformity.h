// Which values are the same in all threads of a simdgroup.
//
// Passes of LLVM's ask a target whether threads take branches differently; on x86 none do, so they are given a target
// of ours.
#pragma once

#include "compiler/analysis/divergence.h"
#include "compiler/ir/pass_runner.h"

namespace kiln {

// Whether the threads of a simdgroup are at one place of the code at the same time, as lanes of a vector are.
enum class Lanes { kLockstep, kIndependent };

/// Whether a value differs between the threads of a simdgroup of itself.
Difference divergence_between_threads(const llvm::Value& value, Lanes lanes);

// LLVM's analyses of one function that many threads run, and DivergenceAnalysis (analysis/divergence.h).
class ThreadAnalyses : public PassRunner {
 public:
  explicit ThreadAnalyses(Lanes lanes = Lanes::kLockstep);
  using PassRunner::run;
  /// Removes blocks that became unreachable, too.
  bool run(llvm::FunctionPassManager& passes, llvm::Function& function) override;
};

}  // namespace kiln
