// A simdgroup of which every access is a row that is there, as all but those at the borders of arrays mostly are.
//
// In code without loops nothing tells before that an access is a row (loop_versioning.h), and a row of threads may be
// too short for its answer to pay. Here it is asked for each simdgroup, once for all of its accesses: those of one
// array that are a known number of bytes apart, as a stencil's, lie within it if the lowest and the highest do. What is
// left is code without branches. What is not such a simdgroup runs code that asks at each access.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln {

/// Of a function that runs a simdgroup, `void (launch, first, frame, x, lanes)`, makes one that runs a full one, if
/// nothing that it asks at its start is answered otherwise than usual, and says so: `bool` of the same arguments. If
/// not it has done nothing.
struct FunctionVersioningPass : llvm::PassInfoMixin<FunctionVersioningPass> {
  // `whole` stays null where fewer accesses than `fewest` can be asked about at the start.
  FunctionVersioningPass(unsigned fewest, llvm::Function*& whole) : fewest(fewest), whole(whole) {}
  llvm::PreservedAnalyses run(llvm::Function& group, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }

  unsigned fewest;
  llvm::Function*& whole;
};

}  // namespace kiln
