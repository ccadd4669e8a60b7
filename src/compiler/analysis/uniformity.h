// Which values are uniform over a simdgroup.
//
// Passes of LLVM query the target for branch divergence. A CPU's reports none, so Kiln gives these passes a target of
// its own.
#pragma once

#include "compiler/analysis/divergence.h"
#include "compiler/ir/pass_runner.h"

namespace kiln {

// Whether the threads of a simdgroup are at the same program point at all times, as lanes of a vector are.
enum class Lanes { kLockstep, kIndependent };

/// Whether a value is a source of divergence between the threads of a simdgroup.
Difference divergence_between_threads(const llvm::Value& value, Lanes lanes);

// LLVM's analyses of one function that many threads run, and DivergenceAnalysis (analysis/divergence.h).
class ThreadAnalyses : public PassRunner {
 public:
  explicit ThreadAnalyses(Lanes lanes = Lanes::kLockstep);

 protected:
  /// Removes blocks that became unreachable, too.
  bool finish(llvm::Function& function, const llvm::PreservedAnalyses& preserved) override;
};

}  // namespace kiln
