// Early-exit linearization. Threads may read, after their next barrier, what others wrote before they returned.
//
// A simdgroup runs as one vector, whose control flow is linearized: one of two sides of a branch runs first. If the
// threads of one side return and the others wait at a barrier, the returning side must run first: no thread waits for
// it, and its neighbors read what it has written. StructurizeCFG orders an edge's target after its source. So a side
// that only returns gets an ordering edge to the other side, a branch that is never taken.
//
// If such a side shares blocks that write with other paths, it gets a copy of them. If those blocks contain
// collectives, threads converge there, and a copy would separate them: `order_tail_before_barriers()` adds ordering
// edges from all of the tail instead.
//
// Edges that all threads take together need no order: no thread waits then.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include "compiler/analysis/barrier_uniformity.h"

namespace kiln {

enum class EarlyExits {
  kNone,     // or the exits write nothing; the function is unchanged
  kFirst,    // now; the function has changed
  kTooLate,  // some exits would be
};

inline constexpr const char* kExitsTooLate =
    "what threads write before they return may come too late for others behind a barrier";

/// Runs before structuring, on branches with two successors. `convergence_blocks` are the blocks in which threads wait,
/// for the threadgroup or for the simdgroup.
EarlyExits linearize_early_exits(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
                                 const Blocks& convergence_blocks);

}  // namespace kiln
