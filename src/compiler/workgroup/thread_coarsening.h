// Runs: what is the same in 64 threads that follow one another is computed once for two simdgroups.
//
// Where rows begin at multiples of 64, a simdgroup's place is a multiple of 64 and the piece, which is 0 or 32. What is
// computed from the multiple alone, as all that belongs to a place with 64 channels, leaves the loop over the two
// pieces; the optimiser sees to that. Here is found what does not depend on the piece, and whether the loop is worth
// having.
//
// Rejected: vectors of 64, of which AVX2 has a quarter of the registers; two pieces one behind the other in the code,
// which is twice as much to compile.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

#include "compiler/analysis/divergence.h"

namespace kiln {

inline constexpr unsigned kCoarsenedThreads = 64;

/// Takes `x`, a multiple of 32, apart: what is computed from it does without the piece where that leaves the result as
/// it is.
void split_coarsened_positions(llvm::Function& function, llvm::Argument& x);

/// Whether enough of the code of one thread is the same in all of a run to compute it once.
bool halves_share_work(llvm::Function& function, const Divergence& divergence);

/// The loop over a run's pieces, if there is one.
struct CoarsenedLoop {
  llvm::PHINode* x = nullptr;  // of the run
  llvm::Loop* loop = nullptr;
  llvm::PHINode* half_offset = nullptr;  // 0 or 32

  bool contain(const llvm::Instruction& instruction) const { return loop && loop->contains(&instruction); }
  /// Before the loop.
  llvm::Instruction* insertion_point() const { return loop->getLoopPreheader()->getTerminator(); }
};

/// Of a loop over runs.
CoarsenedLoop coarsened_loop_of(const llvm::Loop& runs);

/// What an instruction in the loop makes of operands that are there before it: a copy before the loop, or something
/// simpler. Nothing is said to be no poison of it.
llvm::Value* copy_before(const CoarsenedLoop& pieces, const llvm::Instruction& instruction,
                         llvm::ArrayRef<llvm::Value*> operands);

/// Once all is separated: `piece`, whose other bits are 0, stands for that of `x`.
void lower_half_offset(llvm::Function& function, llvm::Value* piece);

}  // namespace kiln
