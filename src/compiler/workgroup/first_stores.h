// What only the first simdgroup of a loop over simdgroups stores is stored before the loop.
//
// `if (simdgroup_index_in_threadgroup == 0) sums[lane] = 0;` makes the first iteration another one than the rest: LLVM
// would take it out of a short loop, which leaves seven alike, and in a long one nobody knows behind the loop what lies
// in memory.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln {

/// Of loops with a known number of iterations: stores of what does not change in the loop, to a place that does not
/// change and that the loop accesses nowhere else.
struct FirstStoresPass : llvm::PassInfoMixin<FirstStoresPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace kiln
