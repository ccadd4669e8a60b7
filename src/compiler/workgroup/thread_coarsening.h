// Thread coarsening by 2: 64 consecutive threads run as two simdgroups, which compute uniform values once.
//
// Where x-lines begin at multiples of 64, a simdgroup's position is a multiple of 64 plus the half offset, which is 0
// or 32. Values computed from the multiple alone, such as all per-position values with 64 channels, are hoisted out of
// the loop over the two halves by the optimiser. This file finds what does not depend on the half offset, and whether
// the loop pays off.
//
// Rejected: vectors of 64, of which 16 registers of 32 bytes hold two; two halves one after the other in the code,
// which is twice as much to compile.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

#include "compiler/analysis/divergence.h"
#include "core/cpu_functions.h"

namespace kiln {

inline constexpr unsigned kCoarsenedThreads = 64;

// A function for a simdgroup whose threads do not wait is the compiler's own: functions for rows of threads call it. It
// is `void (launch, first, i32 half, i32 row, i32 x, i32 lanes)`, a CpuSimdgroupFunction (core/cpu_functions.h) with
// other parameters in the place of the frame: the half offset, which is 0 where rows are not coarsened, and how many
// rows it is after the first one of a call.
enum RowParameter : unsigned { kHalfOffset = kCpuFrame, kRowOfCall, kRowX };

/// Splits `x`, a multiple of 32, into a multiple of 64 and the half offset. Values computed from `x` no longer use the
/// half offset where the result does not depend on it.
void split_coarsened_positions(llvm::Function& function, llvm::Argument& x);

/// Whether enough of one thread's code is uniform over 64 coarsened threads to compute it once.
bool halves_share_work(llvm::Function& function, const Divergence& divergence);

/// The loop over the two halves, if there is one.
struct CoarsenedLoop {
  llvm::PHINode* x = nullptr;  // the first half's position
  llvm::Loop* loop = nullptr;
  llvm::PHINode* half_offset = nullptr;  // 0 or 32

  bool contain(const llvm::Instruction& instruction) const { return loop && loop->contains(&instruction); }
  /// Before the loop.
  llvm::Instruction* insertion_point() const { return loop->getLoopPreheader()->getTerminator(); }
};

/// `outer` is a loop over x in steps of 64 threads.
CoarsenedLoop coarsened_loop_of(const llvm::Loop& outer);

/// The result of an instruction of the loop for operands available before it: a copy before the loop, or a simplified
/// value. It has no annotations that could make it poison.
llvm::Value* copy_before(const CoarsenedLoop& halves, const llvm::Instruction& instruction,
                         llvm::ArrayRef<llvm::Value*> operands);

/// Last step: replaces the pseudo-intrinsic by `half_offset`, whose bits must be 0 but for that of 32.
void lower_half_offset(llvm::Function& function, llvm::Value* half_offset);

}  // namespace kiln
