// LLVM's pass managers with everything registered that its analyses need.
#pragma once

#include <llvm/Passes/PassBuilder.h>
#include <llvm/Target/TargetMachine.h>

namespace kiln {

// Nothing that an analysis has found is kept from one run to the next. Between them functions are changed and deleted,
// and a new one may lie where another was, which is all that LLVM knows an analysed function by.
class PassRunner {
 public:
  /// `machine` gives costs; may be null.
  explicit PassRunner(llvm::TargetMachine* machine);

  /// Runs a pipeline that is written as for LLVM's `opt -passes=…`.
  void run(llvm::StringRef pipeline, llvm::Module& module);
  void run(llvm::StringRef pipeline, llvm::Function& function);
  void run(llvm::FunctionPassManager& passes, llvm::Function& function);
  template <class Pass>
  void run_pass(Pass pass, llvm::Function& function) {
    llvm::FunctionPassManager passes;
    passes.addPass(std::move(pass));
    run(passes, function);
  }

 private:
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager components_;
  llvm::ModuleAnalysisManager modules_;
  llvm::PassBuilder builder_;
};

}  // namespace kiln
