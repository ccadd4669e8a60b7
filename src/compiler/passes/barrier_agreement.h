// Whether the threads of a simdgroup come to barriers of the threadgroup together.
//
// A simdgroup that runs as one vector waits as a whole. Where threads go different ways, those that will come to a
// barrier must meet again before it, in the same iteration of the loops around them; others may only lead to the end,
// since a thread that has returned waits for nobody. Otherwise some would wait at one barrier and some at another,
// which is a fault that has to be told with its numbers; the scalar engine does.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/UniformityAnalysis.h>
#include <llvm/IR/Function.h>

namespace kiln {

/// The control flow is any; `is_barrier` tells the calls.
bool barriers_agree(const llvm::Function& function, llvm::UniformityInfo& uniformity, const llvm::LoopInfo& loops,
                    llvm::function_ref<bool(const llvm::Instruction&)> is_barrier);

}  // namespace kiln
