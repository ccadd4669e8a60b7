// Addresses whose index is the sum of another index and a constant become a constant offset from the other address.
//
// A kernel's index has 32 bits and may wrap. LLVM does not split `zext(x + 32)`, so it sees no relation between the
// accesses of neighbouring simdgroups at x and x + 32. If the sum cannot wrap they are 128 bytes apart. It cannot where
// the constant's bits are zero in x, where a flag or what is known of x's bits says so, or where a dominating check has
// established that x is small enough (loop_versioning.h). Windows across consecutive accesses (split_vectors.h) and
// prefetch.h depend on this, and vector loads on a GPU (nvptx/adjacent_loads.h).
//
// Rejected: LLVM's SeparateConstOffsetFromGEP, which in LLVM 19 applies the flags of a wide sum to its truncation, too:
// for `table[char(v + 5)]` it moved the access, and not the guard. CorrelatedValuePropagation, which derives from
// branches what sums are, but does far more than is needed here.
//
// Complexity: linear, but for the users of a sum's base.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln {

struct ConstantOffsetsPass : llvm::PassInfoMixin<ConstantOffsetsPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace kiln
