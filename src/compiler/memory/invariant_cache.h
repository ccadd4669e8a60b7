// What all simdgroups of a launch compute alike, in a table.
//
// Each simdgroup of a matrix-vector product goes through the vector, loads a piece, brings it into the order of its
// lanes and adds it up: the same for every row of the matrix. In such a loop, which runs a number of times that is
// known when compiling, what depends on nothing but the launch and the iteration is computed once by each worker of the
// launch, in a loop of its own before, and loaded from a table then.
//
// Rejected: two simdgroups at once, whose code is that of one with a second copy of what is its own. They need twice
// the registers, and sharing their turned vector gained 2 % where the table gains 20.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include <cstdint>

namespace kiln {

// Of an optimised CpuSimdgroupFunction (core/cpu_image.h) that never waits. Sets `bytes` to what is wanted where a
// frame would be (CpuImageHeader::table_bytes); 0 where nothing is worth a table.
class InvariantCachePass : public llvm::PassInfoMixin<InvariantCachePass> {
 public:
  explicit InvariantCachePass(uint64_t& bytes) : bytes_(bytes) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  uint64_t& bytes_;
};

}  // namespace kiln
