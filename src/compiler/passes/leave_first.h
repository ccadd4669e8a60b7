// What threads write before they leave, others may read behind their next barrier.
//
// A simdgroup runs as one vector, whose control flow is laid out in an order: of two sides of a branch one is run
// first. Where threads of one side return and the others wait at a barrier, those that return have to be first, since
// nobody waits for them and their neighbours read what they have written. Structuring keeps the order of what follows
// from one another. So a side that only returns is made to lead to the other one, by a branch that is never taken.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include "compiler/passes/barrier_agreement.h"

namespace kiln {

/// Before structuring, of branches with two ways. `barriers` are the blocks in which threads wait. Returns whether the
/// function has changed.
bool leave_first(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, const Blocks& barriers);

}  // namespace kiln
