// Code in which threads read and write rows of memory, once more for the case that all of them lie within their arrays.
//
// Each access asks whether its lanes are a row that its guard lets through, and has code for lanes that go their own
// ways (widener_memory.cpp). In a loop the answer mostly follows from the first iteration and the last one, so that it
// can be had before the loop. What is left then has no branches, and registers are not kept for what never happens.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln {

/// Loops with enough accesses that ask are there twice: without questions, and as they were.
struct LoopVersioningPass : llvm::PassInfoMixin<LoopVersioningPass> {
  explicit LoopVersioningPass(unsigned fewest) : fewest(fewest) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }

  unsigned fewest;  // accesses that ask
};

/// The same of loops over the pieces of runs (workgroup/thread_coarsening.h), in a function for rows: where an answer
/// is that some threads of a run go their own ways, `simdgroup` runs them. (The loop with its questions would run them
/// up to a third faster, and be a quarter more to compile.)
struct CoarsenedLoopVersioningPass : llvm::PassInfoMixin<CoarsenedLoopVersioningPass> {
  explicit CoarsenedLoopVersioningPass(llvm::Function& simdgroup) : simdgroup(simdgroup) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }

  llvm::Function& simdgroup;
};

// Of the name of the function that is called then.
inline constexpr const char* kSlowSuffix = ".slow";

/// The same of a whole function: where an answer is that some lanes go their own ways, it calls another one, which is
/// as the function was. For code in which loops hand one another what they store: of each there is one then.
/// It also does where an index may wrap in a loop of which unrolling leaves nothing. The code is without branches then:
/// it is shorter, so that a processor looks further ahead, and can be put in order (pressure_scheduler.h).
struct ThreadgroupVersioningPass : llvm::PassInfoMixin<ThreadgroupVersioningPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace kiln
