#include "compiler/ir/pass_runner.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/TargetParser/Triple.h>

#include "kiln/error.h"

namespace kiln {

PassRunner::PassRunner(llvm::TargetMachine* machine) : builder_(machine) {
  // There is no C library behind a kernel: what is called expf may be the kernel's own, and nothing may become a call
  // of it. Only the functions that the loader provides are known (`targets/cpu/image_loader.cpp`).
  llvm::TargetLibraryInfoImpl library(machine ? machine->getTargetTriple() : llvm::Triple());
  library.disableAllFunctions();
  for (llvm::LibFunc function : {llvm::LibFunc_memcpy, llvm::LibFunc_memmove, llvm::LibFunc_memset})
    library.setAvailable(function);
  functions_.registerPass([library] { return llvm::TargetLibraryAnalysis(library); });

  builder_.registerModuleAnalyses(modules_);
  builder_.registerCGSCCAnalyses(components_);
  builder_.registerFunctionAnalyses(functions_);
  builder_.registerLoopAnalyses(loops_);
  builder_.crossRegisterProxies(loops_, functions_, components_, modules_);
}

void PassRunner::run(llvm::StringRef pipeline, llvm::Module& module) {
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder_.parsePassPipeline(passes, pipeline))
    throw InternalError("LLVM does not take a pipeline: " + llvm::toString(std::move(error)));
  passes.run(module, modules_);
  modules_.clear();
}

void PassRunner::run(llvm::StringRef pipeline, llvm::Function& function) {
  llvm::FunctionPassManager passes;
  if (llvm::Error error = builder_.parsePassPipeline(passes, pipeline))
    throw InternalError("LLVM does not take a pipeline: " + llvm::toString(std::move(error)));
  run(passes, function);
}

void PassRunner::run(llvm::FunctionPassManager& passes, llvm::Function& function) {
  passes.run(function, functions_);
  functions_.clear(function, function.getName());
}

}  // namespace kiln
