// Whether the threads of a simdgroup come to barriers of the threadgroup together.
//
// A simdgroup that runs as one vector waits as a whole. Where threads go different ways and one way has a barrier, the
// others may only lead to the end: a thread that has returned waits for nobody. Otherwise some would wait at one
// barrier and some at another, or at another iteration's, which is a fault that has to be told with its numbers; the
// scalar engine does.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/UniformityAnalysis.h>
#include <llvm/IR/Function.h>

namespace kiln {

/// The control flow is any; `is_barrier` tells the calls.
bool barriers_agree(const llvm::Function& function, llvm::UniformityInfo& uniformity,
                    const llvm::PostDominatorTree& post_dominators,
                    llvm::function_ref<bool(const llvm::Instruction&)> is_barrier);

}  // namespace kiln
