#include "compiler/analysis/uniformity.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Analysis/TargetTransformInfoImpl.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <algorithm>

#include "compiler/analysis/divergence.h"
#include "compiler/ir/convergence_point.h"
#include "compiler/ir/lane_operations.h"
#include "compiler/ir/metadata.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/ir/simdgroup.h"
#include "core/cpu_image.h"
#include "kiln/error.h"

namespace kiln {
namespace {

// A call that each thread makes for itself: the clock, printf.
bool is_per_thread_call(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  return (call && call->getIntrinsicID() == llvm::Intrinsic::readcyclecounter) || calls(instruction, kPrintFunction);
}

// A thread's position in its threadgroup, where it is not composed of simdgroup and lane.
bool is_position(const llvm::Instruction& instruction) {
  const std::optional<uint64_t> which = thread_value(&instruction);
  const ThreadValueRow* row = which ? thread_value_row(*which) : nullptr;
  return row && row->value == kPositionInThreadgroup;
}

class ThreadsTarget : public llvm::TargetTransformInfoImplCRTPBase<ThreadsTarget> {
 public:
  explicit ThreadsTarget(const llvm::DataLayout& layout) : TargetTransformInfoImplCRTPBase(layout) {}

  bool hasBranchDivergence(const llvm::Function* = nullptr) const { return true; }

  // A private array indexed by a loop counter becomes registers if the loop is unrolled. Otherwise each lane accesses
  // memory each time.
  void getUnrollingPreferences(llvm::Loop* loop, llvm::ScalarEvolution& evolution,
                               llvm::TargetTransformInfo::UnrollingPreferences& preferences,
                               llvm::OptimizationRemarkEmitter* remarks) const {
    TargetTransformInfoImplCRTPBase::getUnrollingPreferences(loop, evolution, preferences, remarks);
    for (const llvm::BasicBlock* block : loop->blocks())
      for (const llvm::Instruction& instruction : *block)
        if (const auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction);
            address && llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(address)) &&
            !loop->isLoopInvariant(address) && !address->hasAllConstantIndices())
          preferences.Threshold = std::max(preferences.Threshold, kPrivateArrayThreshold);
    // So do values that threads pass to one another in steps, as in a scan (memory/store_forwarding.h).
    if (loop->isInnermost() && evolution.getSmallConstantTripCount(loop) <= kMostSteps && has_convergence_point(*loop))
      preferences.Threshold = std::max(preferences.Threshold, kStepsThreshold);
  }

 private:
  // In instructions, once unrolled.
  static constexpr unsigned kPrivateArrayThreshold = 1500, kStepsThreshold = 800;
  static constexpr unsigned kMostSteps = 10;  // what 1024 threads need

  static bool has_convergence_point(const llvm::Loop& loop) {
    return llvm::any_of(loop.blocks(), [](const llvm::BasicBlock* block) {
      return llvm::any_of(
          *block, [](const llvm::Instruction& instruction) { return convergence_point_at(instruction).has_value(); });
    });
  }
};

}  // namespace

Difference divergence_between_threads(const llvm::Value& value, Lanes lanes) {
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
  if (!instruction) return Difference::kInherits;
  if (is_uniform_collective(instruction) || instruction->hasMetadata(kUniform)) return Difference::kNone;
  // Each thread has its own variables and gets its own result of an atomic.
  const bool is_own = llvm::isa<llvm::AllocaInst, llvm::AtomicRMWInst, llvm::AtomicCmpXchgInst>(instruction);
  // The result of a collective depends on which lanes are active.
  const bool is_lane_collective =
      lane_operation(instruction) != LaneOperation::kNone || convergence_point_at(*instruction);
  // Other threads may write between the loads of two lanes.
  const auto* load = llvm::dyn_cast<llvm::LoadInst>(instruction);
  const bool may_change = lanes == Lanes::kIndependent && load && !load->isSimple();
  if (is_own || is_lane_collective || may_change || is_lane(instruction) || is_position(*instruction) ||
      is_per_thread_call(*instruction))
    return Difference::kSource;
  return Difference::kInherits;
}

ThreadAnalyses::ThreadAnalyses(Lanes lanes)
    : PassRunner([lanes](llvm::FunctionAnalysisManager& functions) {
        llvm::TargetLibraryInfoImpl library;
        library.disableAllFunctions();
        functions.registerPass([library] { return llvm::TargetLibraryAnalysis(library); });
        functions.registerPass([] {
          return llvm::TargetIRAnalysis([](const llvm::Function& function) {
            return llvm::TargetTransformInfo(ThreadsTarget(function.getDataLayout()));
          });
        });
        functions.registerPass([lanes] {
          return DivergenceAnalysis(
              [lanes](const llvm::Value& value) { return divergence_between_threads(value, lanes); });
        });
      }) {}

bool ThreadAnalyses::finish(llvm::Function& function, const llvm::PreservedAnalyses& preserved) {
  // Folding the last branch of a pipeline may leave unreachable blocks, which structurization would make predecessors.
  if (llvm::EliminateUnreachableBlocks(function)) {
    invalidate(function);
    return true;
  }
  functions_.invalidate(function, preserved);
  return !preserved.areAllPreserved();
}

}  // namespace kiln
