#include "compiler/ir/pass_runner.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/TargetParser/Triple.h>

#include <mutex>

#include "compiler/ir/llvm_options.h"
#include "kiln/error.h"

namespace kiln {

PassRunner::PassRunner(llvm::TargetMachine* machine) : builder_(machine) {
  // There is no C library behind a kernel: a function named expf may be the kernel's own, and no call may be replaced
  // by a call of it. Only the functions that the loader provides are known (`targets/cpu/image_loader.cpp`).
  llvm::TargetLibraryInfoImpl library(machine ? machine->getTargetTriple() : llvm::Triple());
  library.disableAllFunctions();
  for (llvm::LibFunc function : {llvm::LibFunc_memcpy, llvm::LibFunc_memmove, llvm::LibFunc_memset})
    library.setAvailable(function);
  functions_.registerPass([library] { return llvm::TargetLibraryAnalysis(library); });
  register_analyses();
}

PassRunner::PassRunner(llvm::function_ref<void(llvm::FunctionAnalysisManager&)> register_first) {
  register_first(functions_);
  register_analyses();
}

void PassRunner::register_analyses() {
  static std::once_flag once;
  std::call_once(once, [] {
    // The number of blocks before a load in which GVN searches for an equal load. In long functions with branches
    // LLVM's default of 200 takes up to half of the optimizer's time. The lower limit changes the code of three of 283
    // bodies, which becomes shorter.
    set_llvm_option("memdep-block-number-limit", "50");
  });
  builder_.registerModuleAnalyses(modules_);
  builder_.registerCGSCCAnalyses(components_);
  builder_.registerFunctionAnalyses(functions_);
  builder_.registerLoopAnalyses(loops_);
  builder_.crossRegisterProxies(loops_, functions_, components_, modules_);
}

bool PassRunner::run(llvm::StringRef pipeline, llvm::Module& module) {
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder_.parsePassPipeline(passes, pipeline))
    throw InternalError("LLVM does not take a pipeline: " + llvm::toString(std::move(error)));
  const llvm::PreservedAnalyses preserved = passes.run(module, modules_);
  invalidate_all();
  return !preserved.areAllPreserved();
}

bool PassRunner::run(llvm::StringRef pipeline, llvm::Function& function) {
  llvm::FunctionPassManager passes;
  if (llvm::Error error = builder_.parsePassPipeline(passes, pipeline))
    throw InternalError("LLVM does not take a pipeline: " + llvm::toString(std::move(error)));
  return run(passes, function);
}

bool PassRunner::finish(llvm::Function& function, const llvm::PreservedAnalyses& preserved) {
  functions_.invalidate(function, preserved);
  return !preserved.areAllPreserved();
}

void PassRunner::invalidate_all() {
  modules_.clear();
  components_.clear();
  functions_.clear();
  loops_.clear();
}

}  // namespace kiln
