// Rematerializes loads of inputs that are used after a barrier as well as before it.
//
// A simdgroup that waits at a barrier keeps its live values in memory. A value of an input, at an address that takes
// few instructions to compute, need not be stored there: it is in memory already, and in the nearest cache since the
// first load.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

namespace kiln {

/// The function is one thread's. Adds instructions only; returns whether it did.
bool reload_inputs(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
                   llvm::function_ref<bool(const llvm::Instruction&)> is_barrier);

}  // namespace kiln
