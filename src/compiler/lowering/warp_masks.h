// Whether the lanes that the mask of a `_sync` function names are together at the call.
//
// CUDA lets each thread of a warp go its own way: `__shfl_sync(~0u, v, 3)` in both sides of a branch waits until the
// lanes of both sides have come, and exchanges among all 32. A simdgroup that runs as one vector runs one side after
// the other, so such a body is the scalar engine's, whose scheduler follows PTX's rule (targets/cpu/group_scheduler.h).
//
// Most calls need no such thing, and must stay: all lanes come to them, or those that do not come have returned, which
// the rule counts as come. So a call is found fault with where lanes of its mask may take another path at a divergent
// branch and then wait somewhere: at another call, at a barrier, or at the same call in another iteration. A lane that
// takes another path cannot be one that the mask names where
//
//   the mask is a constant, and the condition, evaluated for each lane, sends none of its lanes there;
//   the mask is a part of what `__activemask` or `__ballot_sync` gave, and the lanes have parted before, or by the very
//   predicate that they voted on;
//   the branch is uniform among the lanes that have the mask in common: its condition is computed from the mask, or
//   from the number of the tile that the mask stands for.
//
// Rejected: comparing the mask with the active lanes at run time. It would find the same, but only after the simdgroup
// has written to memory.
//
// Blocks are visited once for each divergent branch between whose sides and join a call lies.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

namespace kiln {

inline constexpr const char* kMayConvergeElsewhere =
    "lanes that the mask of a _sync function names may wait at another call";

/// Whether each call of kMaskFunction has the lanes that its mask names, but for those that return without waiting
/// again. Exchanges are operations on lanes already (lower_collectives()).
bool masks_are_together(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
                        llvm::function_ref<bool(const llvm::Instruction&)> is_barrier);

void remove_masks(llvm::Function& function);

}  // namespace kiln
