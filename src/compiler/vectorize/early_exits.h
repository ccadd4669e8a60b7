// What threads write before they leave, others may read behind their next barrier.
//
// A simdgroup runs as one vector, whose control flow is laid out in an order: of two sides of a branch one is run
// first. Where threads of one side return and the others wait at a barrier, those that return have to be first, since
// nobody waits for them and their neighbours read what they have written. Structuring keeps the order of what follows
// from one another. So a side that only returns is made to lead to the other one, by a branch that is never taken.
//
// What such a side shares with others and writes in, it gets a copy of. Where values are exchanged there, threads come
// together for them, and a copy would keep them apart: `put_tail_first()` leads on from all of it.
//
// Ways that all take together need no order: nobody waits then.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include "compiler/analysis/barrier_uniformity.h"

namespace kiln {

enum class EarlyExits {
  kNone,     // or they write nothing: the function is as it was
  kFirst,    // now: the function has changed
  kTooLate,  // some would be
};

inline constexpr const char* kLeavesTooLate =
    "what threads write before they return may come too late for others behind a barrier";

/// Before structuring, of branches with two ways. `waits` are the blocks in which threads wait, for the threadgroup or
/// for the simdgroup.
EarlyExits linearize_early_exits(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
                                 const Blocks& waits);

}  // namespace kiln
