// Rows of a run's pieces (workgroup/thread_coarsening.h) by the address of the first piece's row, and a distance.
//
// An element's number is a sum of 32 bits, and LLVM may not take it apart where it becomes as wide as an address: the
// sum may wrap. Within a run it does not, as a run begins at a multiple of 64. So all that leads to a row leaves the
// loop over the pieces, and LLVM sees how far rows reach, which lets guards be asked once for both (loop_versioning.h).
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln {

/// Of a function for rows of threads, in its loop over runs.
struct CoarsenedAddressesPass : llvm::PassInfoMixin<CoarsenedAddressesPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace kiln
