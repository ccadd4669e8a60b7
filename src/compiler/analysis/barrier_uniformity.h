// Barrier uniformity: whether the threads of a simdgroup reach barriers of the threadgroup together.
//
// A simdgroup that runs as one vector waits as a whole. After a divergent branch, the threads that will reach a barrier
// must therefore reconverge before it, in the same iteration of the enclosing loops. All other paths may only lead to
// the end, since a barrier does not wait for threads that have returned. Otherwise some threads would wait at one
// barrier and some at another. That is a fault, which must be reported with its numbers; the scalar engine does so.
//
// Uniformity is checked twice. First over all threads. If that fails, over the threads that will reach a barrier, as if
// the others went with them: if some threads leave a loop by a `return`, the rest leave it together, so a value that
// the loop computes uniformly is still uniform after it. The second check needs a copy of the function without the
// edges that lead to no barrier; Divergence then analyses the copy.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include "compiler/ir/block_sets.h"

namespace kiln {

class Divergence;

/// The blocks with an instruction for which the predicate holds.
Blocks blocks_with(llvm::Function& function, llvm::function_ref<bool(const llvm::Instruction&)> predicate);

/// The blocks from which a path leads to one of `blocks`, including `blocks`.
Blocks blocks_reaching(const Blocks& blocks);

/// The same along edges for which `is_edge` holds.
Blocks blocks_reaching_by_edges(
    const Blocks& blocks, llvm::function_ref<bool(const llvm::BasicBlock& from, const llvm::BasicBlock& to)> is_edge);

/// The same as blocks_reaching() without ordering edges.
Blocks blocks_reaching_by_real_edges(const Blocks& blocks);

/// The blocks in which the threads that will reach a barrier may be divergent: those between a divergent branch and the
/// first block that all of these threads reach in the same iteration of the loops around both.
Blocks divergent_blocks(const llvm::LoopInfo& loops, const Divergence& divergence, const Blocks& barriers);

/// Any control flow. `barriers` are the blocks in which threads wait or otherwise have to be together.
bool barriers_are_uniform(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, const Blocks& barriers);

}  // namespace kiln
