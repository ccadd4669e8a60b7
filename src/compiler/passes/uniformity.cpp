#include "compiler/passes/uniformity.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Analysis/TargetTransformInfoImpl.h>
#include <llvm/IR/Instructions.h>

#include "compiler/passes/lane_exchanges.h"
#include "kiln/error.h"

namespace kiln {
namespace {

class ThreadsTarget : public llvm::TargetTransformInfoImplCRTPBase<ThreadsTarget> {
 public:
  explicit ThreadsTarget(const llvm::DataLayout& layout) : TargetTransformInfoImplCRTPBase(layout) {}

  bool hasBranchDivergence(const llvm::Function* = nullptr) const { return true; }

  bool isSourceOfDivergence(const llvm::Value* value) const {
    // Each thread has its own variables, and gets its own result of an atomic.
    if (llvm::isa<llvm::AllocaInst, llvm::AtomicRMWInst, llvm::AtomicCmpXchgInst>(value)) return true;
    // What lanes exchange depends on which of them are there.
    if (lane_operation(value) != LaneOperation::kNone) return !is_same_in_all_lanes(value);
    return is_lane(value);
  }

  bool isAlwaysUniform(const llvm::Value* value) const { return is_same_in_all_lanes(value); }
};

}  // namespace

bool is_lane(const llvm::Value* value) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(value);
  if (!call || !call->getCalledFunction()) return false;
  llvm::StringRef name = call->getCalledFunction()->getName();
  return name == kLaneFunction || name == kPlaceFunction;
}

ThreadAnalyses::ThreadAnalyses() {
  llvm::TargetLibraryInfoImpl library;
  library.disableAllFunctions();
  functions_.registerPass([library] { return llvm::TargetLibraryAnalysis(library); });
  functions_.registerPass([] {
    return llvm::TargetIRAnalysis([](const llvm::Function& function) {
      return llvm::TargetTransformInfo(ThreadsTarget(function.getDataLayout()));
    });
  });
  builder_.registerModuleAnalyses(modules_);
  builder_.registerCGSCCAnalyses(components_);
  builder_.registerFunctionAnalyses(functions_);
  builder_.registerLoopAnalyses(loops_);
  builder_.crossRegisterProxies(loops_, functions_, components_, modules_);
}

void ThreadAnalyses::run(llvm::StringRef pipeline, llvm::Function& function) {
  llvm::FunctionPassManager passes;
  if (llvm::Error error = builder_.parsePassPipeline(passes, pipeline))
    throw InternalError("LLVM does not take a pipeline: " + llvm::toString(std::move(error)));
  run(passes, function);
}

void ThreadAnalyses::run(llvm::FunctionPassManager& passes, llvm::Function& function) {
  functions_.invalidate(function, passes.run(function, functions_));
}

}  // namespace kiln
