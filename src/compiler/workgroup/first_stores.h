// First stores: stores that only the first simdgroup of a loop over simdgroups executes are hoisted out of the loop.
//
// `if (simdgroup_index_in_threadgroup == 0) sums[lane] = 0;` makes the first iteration differ from the others. LLVM
// would peel it off a short loop, which leaves seven equal iterations. In a long loop the memory's contents would be
// unknown after the loop.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln {

/// For loops with a known trip count: invariant stores to an invariant address that the loop does not access otherwise.
struct FirstStoresPass : llvm::PassInfoMixin<FirstStoresPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace kiln
