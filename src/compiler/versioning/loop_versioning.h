// Versioning of loops, and of functions with loops (versioning.h): in a loop the answer to a check mostly follows from
// the first and the last iteration.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln {

/// Versions loops that have enough checked accesses: a fast version without checks, and the original.
struct LoopVersioningPass : llvm::PassInfoMixin<LoopVersioningPass> {
  explicit LoopVersioningPass(unsigned fewest) : fewest(fewest) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }

  unsigned fewest;  // checked accesses
};

/// Versions loops of one thread, in a GPU's kernel: a version in which the accesses that each iteration makes have no
/// bounds guards, where the first and the last iteration's pass, and the original. Loops in which threads wait for one
/// another stay as they are. Linear in the code times the depth of its loops.
struct GuardedLoopVersioningPass : llvm::PassInfoMixin<GuardedLoopVersioningPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

/// The same for loops over the two halves of 64 coarsened threads (workgroup/thread_coarsening.h), in a function for
/// x-lines of threads: where a check fails, `simdgroup` runs the halves. (The original loop with its checks would run
/// them up to a third faster, and take a quarter more to compile.)
struct CoarsenedLoopVersioningPass : llvm::PassInfoMixin<CoarsenedLoopVersioningPass> {
  explicit CoarsenedLoopVersioningPass(llvm::Function& simdgroup) : simdgroup(simdgroup) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }

  llvm::Function& simdgroup;
};

// Suffix of the name of the function called on the slow path.
inline constexpr const char* kSlowSuffix = ".slow";

/// The same for a whole function: where a check fails, it calls a clone of the original. For code in which loops pass
/// values to one another through memory: each loop then exists once in the function.
///
/// It also assumes that no index wraps in loops that unrolling removes. The code then has no branches: it is shorter,
/// so that a processor looks further ahead, and it can be scheduled (pressure_scheduler.h).
struct ThreadgroupVersioningPass : llvm::PassInfoMixin<ThreadgroupVersioningPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace kiln
