// Loops whose vectors do not fit into registers go round for one half of the lanes, and then for the other.
//
// With 16 registers of eight numbers, 32 lanes have room for four values: a loop that carries five would store and load
// them in each iteration. Lanes know nothing of one another in such a loop, but for whether any goes on; where the
// kernel lets lanes exchange what they have not even that, since it may ask for it itself.
//
// Loops that load what others have computed (memory/invariant_cache.h) do in each iteration what is to be done for one
// register, then for the next one: of the sums of some rows one register's are wanted at a time, and all else is an
// operand in memory.
//
// Rejected: to go round for each register, which keeps its sums in registers, but reads every second cache line, with
// AVX2 a half of it: what no processor foresees. A 4-bit matrix-vector product took up to 1.35 times as long where
// other programs used the memory, too.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln {

class LaneLoopSplittingPass : public llvm::PassInfoMixin<LaneLoopSplittingPass> {
 public:
  LaneLoopSplittingPass(unsigned registers, unsigned register_bytes, bool may_have_collectives)
      : registers_(registers), register_bytes_(register_bytes), may_have_collectives_(may_have_collectives) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  unsigned registers_, register_bytes_;
  bool may_have_collectives_;
};

}  // namespace kiln
