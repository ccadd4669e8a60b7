// Addresses whose index is the sum of another one and a number lie that far behind the other address.
//
// An index of a body has 32 bits and may wrap, so that the rows of neighbouring simdgroups, at x and at x + 32, are
// nothing to one another for LLVM, which does not take `zext(x + 32)` apart. Where the sum cannot wrap they are 128
// bytes apart: where the number's bits are zero in x, where it is said to be so, or where a question before asked
// whether x is small enough (loop_versioning.h). Windows across rows (split_vectors.h) and prefetch.h live by it.
//
// Rejected: LLVM's SeparateConstOffsetFromGEP, which in LLVM 19 takes what is said of a wide sum for what is truncated
// from it, too: of `table[char(v + 5)]` it moved the access, and not the guard. CorrelatedValuePropagation, which finds
// what a branch says of sums, with far more than is wanted here.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln {

struct ConstantOffsetsPass : llvm::PassInfoMixin<ConstantOffsetsPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace kiln
