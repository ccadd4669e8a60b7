// Splits a loop whose live vectors exceed the registers: it runs for one half of the lanes, then for the other.
//
// 16 registers of eight numbers hold four values of 32 lanes: a loop that carries five would spill and reload them in
// each iteration. Lanes are independent in such a loop, except for the test whether any lane continues. In a kernel
// with collectives even that test is refused, since it may be the kernel's own.
#pragma once

#include <llvm/IR/PassManager.h>

#include "compiler/ir/vector_isa.h"

namespace kiln {

class LaneLoopSplittingPass : public llvm::PassInfoMixin<LaneLoopSplittingPass> {
 public:
  LaneLoopSplittingPass(const VectorIsa& vector_isa, bool may_have_collectives)
      : isa_(vector_isa), may_have_collectives_(may_have_collectives) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  VectorIsa isa_;
  bool may_have_collectives_;
};

}  // namespace kiln
