// Splits a loop whose live vectors exceed the registers: it runs for one half of the lanes, then for the other.
//
// 16 registers of eight numbers hold four values of 32 lanes: a loop that carries five would spill and reload them in
// each iteration. Lanes are independent in such a loop, except for the test whether any lane continues. In a kernel
// with collectives even that test is refused, since it may be the kernel's own.
//
// A loop that loads from the invariant cache (memory/invariant_cache.h) stays one loop. Each iteration does the work
// for one register, then for the next one. The sums of only one register are live at a time, and all else is a memory
// operand.
//
// Rejected: one loop for each register. It keeps its sums in registers, but reads every second cache line (with
// registers of 32 bytes half of one), a pattern that no hardware prefetcher predicts. A 4-bit matrix-vector product
// took up to 1.35 times as long where other programs used the memory, too.
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
