// Coarsened addresses: the accesses of both halves (workgroup/thread_coarsening.h) use the first half's address and an
// offset.
//
// An element's index is a 32-bit sum, and LLVM may not split its extension to the width of an address: the sum may
// wrap. Within 64 coarsened threads it does not, as they begin at a multiple of 64. So the address computation is
// hoisted out of the loop over halves. LLVM then sees how far accesses reach, so one bounds check serves both halves
// (loop_versioning.h).
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln {

/// For functions over x-lines of threads, in the loop over coarsened threads.
struct CoarsenedAddressesPass : llvm::PassInfoMixin<CoarsenedAddressesPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace kiln
