// Whether the lanes that the mask of a `_sync` function names are together at the call.
//
// CUDA lets each thread of a warp take its own path: `__shfl_sync(~0u, v, 3)` in both sides of a branch waits until the
// lanes of both sides have arrived, and exchanges values among all 32. A simdgroup that runs as one vector runs one
// side after the other. So such a body runs on the scalar engine, whose scheduler follows the GPU's rule
// (targets/cpu/group_scheduler.h).
//
// Most calls do not need that and must stay on the SIMD engine: all lanes reach them, or the lanes that do not have
// returned, which the GPU's rule counts as arrived. So a call is rejected only if lanes of its mask may take another
// path at a divergent branch and then wait: at another call, at a barrier, or at the same call in another iteration. A
// lane on another path cannot be in the mask if
//
// * the mask is a constant, and the condition, evaluated for each lane, sends none of its lanes there;
// * the mask is a part of an `__activemask` or `__ballot_sync` result, and the lanes have diverged before it, or by the
//   very predicate that they voted on;
// * the branch is uniform among the lanes that share the mask: its condition is computed from the mask, or from the
//   number of the tile that the mask represents.
//
// Rejected: comparing the mask with the active lanes at run time. That would find the same, but only after the
// simdgroup has written to memory.
//
// Blocks are visited once for each divergent branch with a call between its sides and its join.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

namespace kiln {

inline constexpr const char* kMayWaitElsewhere =
    "lanes that the mask of a _sync function names may wait at another call";

/// Whether each call of kMaskFunction has the lanes that its mask names, except lanes that return without waiting
/// again. Collectives are lane operations already (lower_collectives()).
bool masks_are_converged(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
                         llvm::function_ref<bool(const llvm::Instruction&)> is_barrier);

void remove_masks(llvm::Function& function);

}  // namespace kiln
