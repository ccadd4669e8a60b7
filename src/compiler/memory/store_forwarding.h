// Store forwarding: values that simdgroups of a threadgroup pass through threadgroup memory stay in registers if the
// compiler knows which store wrote them.
//
// In a threadgroup's function for a known number of simdgroups with unrolled loops over them, offsets in threadgroup
// memory are constants. A step of a scan then reads one element beside the vector just stored: parts of two registers,
// which a processor does not forward from its store buffer, and which LLVM does not combine. Here such a load becomes a
// shuffle of the stored registers. If nothing is loaded any more, the stores are dead: the memory's contents are lost
// anyway when the threadgroup ends.
#pragma once

#include <llvm/IR/PassManager.h>

#include "compiler/ir/vector_isa.h"

namespace kiln {

// For a whole threadgroup's function (workgroup/simdgroup_loops.h).
struct StoreForwardingPass : llvm::PassInfoMixin<StoreForwardingPass> {
  /// In a load of several registers each register is also examined separately.
  explicit StoreForwardingPass(const VectorIsa& vector_isa) : vector_isa(vector_isa) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }

  VectorIsa vector_isa;
};

}  // namespace kiln
