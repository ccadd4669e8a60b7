// What threadgroups read with jumps is asked for one threadgroup before.
//
// A processor follows what is read in order and fetches ahead. A simdgroup whose threads each add up sixteen elements,
// 256 apart, reads two cache lines of each KiB, the next simdgroup two more: all of it is in order only for who sees
// the threadgroup as a whole. Its neighbour in the grid reads the same places further on, so that each row's address is
// computed for the neighbour, too, and asked for. A tree reduction takes two thirds of the time with AVX2.
//
// Rejected: another order of the loads, two to four simdgroups at a time, which is no faster; asking for what is read
// in order, which the processor has seen, and which made a scan slower where its arrays lay a multiple of 4 KiB apart.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln {

/// Of a function for a threadgroup, whose second parameter is its record: of rows of inputs that are loaded once.
struct PrefetchPass : llvm::PassInfoMixin<PrefetchPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace kiln
