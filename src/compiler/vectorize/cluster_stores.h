// Moves stores to neighboring addresses, as to the components of a `float4` or to `to[4 * i + 1]`, next to one another.
//
// Before the pass the loads and the arithmetic of the later stores are between them. Afterwards all that the stores
// cannot change is computed before them: common subexpressions are found there, and the stores can be emitted together
// (widener_interleaved.h).
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

namespace kiln {

/// The analyses' ScalarEvolution must be valid for the function; it stays valid.
void cluster_stores(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace kiln
