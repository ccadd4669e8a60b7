// Rows whose places are read from memory are asked for some iterations ahead.
//
// A grid sample reads for each place four rows of channels that lie anywhere. No processor foresees them, and it
// looks ahead no further than its window of instructions goes, two or three places. So what leads from a place's
// number to its rows is computed a second time for a place that comes later, and its rows are asked for. What is
// written at places that are computed is asked for with them, since all later stores wait behind a line that is
// missing. Processors differ in the cache that lines should come into: the launch says which one, since code serves
// all of a level. In loops inside, where there would be a branch for few lines, it is the first.
//
// Only in loops over runs (workgroup/thread_coarsening.h), where it is little beside what a place costs; and where
// atomics add to rows, as in a grid sample's gradient, since a locked instruction waits for its line and what comes
// behind it for the lock, so that one row is waited for after the other. Rejected: more places at a time, each with its
// part of the work, which needs as many registers more.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln {

/// Of a function for rows of threads, in a loop whose counter is an i32.
struct IndirectPrefetchPass : llvm::PassInfoMixin<IndirectPrefetchPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

/// Of a simdgroup's function, where it has atomics of rows, for a call with a later place in x.
struct AtomicPrefetchPass : llvm::PassInfoMixin<AtomicPrefetchPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace kiln
