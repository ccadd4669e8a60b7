// Loops whose vectors do not fit into registers go round for one half of the lanes, and then for the other.
//
// With 16 registers of eight numbers, 32 lanes have room for four values: a loop that carries five would store and load
// them in each iteration. Lanes know nothing of one another in such a loop, but for whether any goes on.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln {

class SplitLoopsPass : public llvm::PassInfoMixin<SplitLoopsPass> {
 public:
  SplitLoopsPass(unsigned registers, unsigned register_bytes)
      : registers_(registers), register_bytes_(register_bytes) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  unsigned registers_, register_bytes_;
};

}  // namespace kiln
