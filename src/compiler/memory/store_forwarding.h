// What simdgroups of a threadgroup hand one another through threadgroup memory, where it is known when compiling who
// stored what: it stays in registers.
//
// Where a threadgroup's function is made for a known number of simdgroups, and its loops over them are unrolled, places
// in threadgroup memory are constants. A step of a scan then reads one element beside what was stored just before:
// parts of two registers, which a processor does not forward from its store buffer, and which LLVM does not put
// together either. Here such a load becomes a permutation of the registers that were stored. Where nothing is read from
// memory any more, nothing needs to be stored there: what lies in it when the threadgroup ends is lost anyway.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln {

// Of a function for a whole threadgroup (workgroup/simdgroup_loops.h).
struct StoreForwardingPass : llvm::PassInfoMixin<StoreForwardingPass> {
  /// Of loads of several registers each is looked at by itself, too.
  explicit StoreForwardingPass(unsigned register_bytes) : register_bytes(register_bytes) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }

  unsigned register_bytes;
};

}  // namespace kiln
