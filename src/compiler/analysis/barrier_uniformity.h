// Whether the threads of a simdgroup come to barriers of the threadgroup together.
//
// A simdgroup that runs as one vector waits as a whole. Where threads go different ways, those that will come to a
// barrier must meet again before it, in the same iteration of the loops around them; others may only lead to the end,
// since a thread that has returned waits for nobody. Otherwise some would wait at one barrier and some at another,
// which is a fault that has to be told with its numbers; the scalar engine does.
//
// What threads have in common is asked for in two ways. Of all threads first. Where that does not do, of those that
// will come to a barrier, as if the others went with them: a loop that some leave by a `return` is left by the rest
// together, so what it has computed for all is still the same behind it. The second way needs a copy of the function,
// without the ways that lead to no barrier, in which Divergence then says it.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include "compiler/ir/block_sets.h"

namespace kiln {

class Divergence;

/// Those with an instruction of which the predicate holds.
Blocks blocks_with(llvm::Function& function, llvm::function_ref<bool(const llvm::Instruction&)> predicate);

/// Those from which a way leads to one of `blocks`, they included.
Blocks blocks_reaching(const Blocks& blocks);

/// The same by ways of which `is_edge` holds.
Blocks blocks_reaching_by_edges(
    const Blocks& blocks, llvm::function_ref<bool(const llvm::BasicBlock& from, const llvm::BasicBlock& to)> is_edge);

/// The same as blocks_reaching() but for ways that nobody takes.
Blocks blocks_always_reaching(const Blocks& blocks);

/// Those to which some may come that will wait while others of the simdgroup that will are elsewhere: between a branch
/// where they part and the next place that all of them come to, in the same iteration of the loops around both.
Blocks divergent_blocks(const llvm::LoopInfo& loops, const Divergence& divergence, const Blocks& waits);

/// The control flow is any. `barriers` are the blocks in which threads wait, or where else they have to be together.
bool barriers_are_uniform(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, const Blocks& barriers);

}  // namespace kiln
