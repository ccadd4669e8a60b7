// Indirect prefetch: accesses at addresses that depend on loaded values are prefetched some iterations ahead.
//
// For each position a grid sample reads four runs of channels at arbitrary addresses. No hardware prefetcher predicts
// them, and the processor looks ahead no further than its instruction window, two or three positions. So the
// computation from a position's index to its addresses is repeated for a later position, whose lines are prefetched.
// Stores at computed addresses are prefetched with them, since a store that misses blocks all later stores. Processors
// differ in the cache that lines should be prefetched into. The launch chooses it, since one binary serves all
// processors of a level. In inner loops, where a branch would serve few lines, it is the first-level cache.
//
// Only in loops over coarsened threads (workgroup/thread_coarsening.h), where it costs little compared to a position's
// work; and where atomics add to consecutive elements, as in a grid sample's gradient. A locked instruction waits for
// its line, and what follows it waits for the lock, so the misses are serialized. Rejected: more positions at a time,
// each with a part of its work, which needs as many times the registers.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln {

/// For functions over x-lines of threads, in a loop whose counter is an i32.
struct IndirectPrefetchPass : llvm::PassInfoMixin<IndirectPrefetchPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

/// For a simdgroup's function that has striped atomics, for a call with a later position in x.
struct AtomicPrefetchPass : llvm::PassInfoMixin<AtomicPrefetchPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace kiln
