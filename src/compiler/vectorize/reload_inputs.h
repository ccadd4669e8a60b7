// Inputs that are read behind a barrier as well as before it are loaded again.
//
// A simdgroup that waits keeps its values in memory. What lies in an input, at a place that takes few instructions to
// compute, need not be stored there: it is in memory already, and in the nearest cache since the first time.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

namespace kiln {

/// The function is one thread's. Adds instructions only; returns whether it did.
bool reload_inputs(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
                   llvm::function_ref<bool(const llvm::Instruction&)> is_barrier);

}  // namespace kiln
