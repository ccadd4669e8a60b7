// Stores to neighbouring places, as to the components of a `float4` or to `to[4 * i + 1]`, one behind the other.
//
// Between them lie the loads and the arithmetic of the later ones. What the stores cannot change is computed before all
// of them then: it is found to be the same where it is, and the stores can be made together (widener_interleaved.cpp).
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

namespace kiln {

/// The analyses' ScalarEvolution must know the function as it is; afterwards it still does.
void cluster_stores(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace kiln
