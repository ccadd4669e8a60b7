// LLVM's pass managers with the analyses that Kiln's passes need.
#pragma once

#include <llvm/Passes/PassBuilder.h>
#include <llvm/Target/TargetMachine.h>

namespace kiln {

// Runs passes on functions, and keeps the analyses that they preserve. LLVM identifies an analysed function by its
// address: forget() must be called before a function is erased, and after it was changed by anything but a pass.
class PassRunner {
 public:
  /// `machine` gives costs; may be null.
  explicit PassRunner(llvm::TargetMachine* machine);
  virtual ~PassRunner() = default;
  PassRunner(const PassRunner&) = delete;
  PassRunner& operator=(const PassRunner&) = delete;

  /// Runs a pipeline that is written as for LLVM's `opt -passes=…`. Returns whether it changed the code. A module's
  /// pipeline keeps no analyses.
  bool run(llvm::StringRef pipeline, llvm::Module& module);
  bool run(llvm::StringRef pipeline, llvm::Function& function);
  bool run(llvm::FunctionPassManager& passes, llvm::Function& function) {
    return finish(function, passes.run(function, functions_));
  }
  /// Not by one of LLVM's pass managers: a pass of Kiln's may throw, and LLVM is compiled without exceptions.
  template <class Pass>
  bool run_pass(Pass pass, llvm::Function& function) {
    return finish(function, pass.run(function, functions_));
  }

  llvm::FunctionAnalysisManager& functions() { return functions_; }
  void invalidate(llvm::Function& function) { functions_.clear(function, function.getName()); }
  void invalidate_all();

 protected:
  /// After a pass or a pipeline. Returns whether it changed the code.
  virtual bool finish(llvm::Function& function, const llvm::PreservedAnalyses& preserved);

  /// Registers LLVM's analyses, but for those of functions that were registered before.
  explicit PassRunner(llvm::function_ref<void(llvm::FunctionAnalysisManager&)> register_first);

  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager components_;
  llvm::ModuleAnalysisManager modules_;
  llvm::PassBuilder builder_;

 private:
  void register_analyses();
};

}  // namespace kiln
