#include "compiler/workgroup/interleaved_simdgroups.h"

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>
#include <llvm/Transforms/Utils/UnrollLoop.h>

#include "compiler/ir/metadata.h"
#include "compiler/ir/remarks.h"

namespace kiln {
namespace {

using namespace llvm;

// Sums that a processor has in flight: two additions in each cycle, of four cycles each.
constexpr unsigned kSumsInFlight = 8;
constexpr unsigned kMostTogether = 4;
// Instructions of an inner loop in all copies.
constexpr size_t kMostInCopies = 640;

unsigned registers_of(const Value& value, const VectorIsa& isa) {
  if (!value.getType()->isVectorTy()) return 0;
  const uint64_t bytes = value.getType()->getPrimitiveSizeInBits().getFixedValue() / 8;
  return static_cast<unsigned>(std::max<uint64_t>(1, bytes / isa.register_bytes));
}

// The sums that one iteration continues, in registers; 0 if the loop is not one of few sums that only reads.
unsigned sums_of(const Loop& inner, const VectorIsa& isa) {
  if (inner.getNumBlocks() != 1) return 0;
  unsigned sums = 0;
  for (const Instruction& instruction : *inner.getHeader()) {
    if (instruction.mayHaveSideEffects() || instruction.isAtomic()) return 0;
    if (auto* phi = dyn_cast<PHINode>(&instruction)) sums += registers_of(*phi, isa);
  }
  return sums;
}

// Scratch that one simdgroup would have while another one is at work (ir/metadata.h).
bool uses_scratch(const Loop& loop) {
  return any_of(loop.blocks(), [](const BasicBlock* block) {
    return any_of(*block, [](const Instruction& instruction) {
      return any_of(instruction.operands(), [](const Use& operand) {
        const auto* variable =
            operand->getType()->isPointerTy() ? dyn_cast<AllocaInst>(getUnderlyingObject(operand)) : nullptr;
        return variable && variable->hasMetadata(kScratch);
      });
    });
  });
}

class Interleaving {
 public:
  Interleaving(Function& function, FunctionAnalysisManager& analyses, const VectorIsa& isa)
      : loops_(analyses.getResult<LoopAnalysis>(function)),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(function)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(function)),
        assumptions_(analyses.getResult<AssumptionAnalysis>(function)),
        target_(analyses.getResult<TargetIRAnalysis>(function)),
        remarks_(&function),
        isa_(isa) {}

  bool run() {
    bool changed = false;
    const SmallVector<Loop*> loops = loops_.getLoopsInPreorder();
    for (Loop* loop : loops) changed |= interleave(*loop);
    return changed;
  }

 private:
  bool interleave(Loop& loop) {
    BasicBlock* latch = loop.getLoopLatch();
    if (!latch || !latch->getTerminator()->hasMetadata(kSimdgroupLoop) || loop.getSubLoops().size() != 1) return false;
    Loop& inner = *loop.getSubLoops()[0];
    const unsigned sums = sums_of(inner, isa_), trip_count = evolution_.getSmallConstantTripCount(&loop);
    if (sums == 0 || trip_count < 2 || loop.getExitingBlock() != latch || uses_scratch(loop)) return false;
    const SCEV* iterations = evolution_.getBackedgeTakenCount(&inner);
    if (isa<SCEVCouldNotCompute>(iterations) || !evolution_.isLoopInvariant(iterations, &loop)) {
      remark("interleaved-simdgroups", inner, "not this loop: simdgroups may have other numbers of iterations");
      return false;
    }
    unsigned together = kMostTogether;
    while (together > 1 && (together * sums > kSumsInFlight || trip_count % together != 0 ||
                            together * inner.getHeader()->size() > kMostInCopies))
      together /= 2;
    if (together < 2) return false;
    simplifyLoop(&loop, &dominators_, &loops_, &evolution_, &assumptions_, nullptr, /*PreserveLCSSA=*/false);
    formLCSSARecursively(loop, dominators_, &loops_, &evolution_);
    // All blocks but the inner loop's come before it or after it, in each iteration of the outer loop.
    if (!loop.isLoopSimplifyForm() || !inner.isLoopSimplifyForm()) return false;
    for (const BasicBlock* block : loop.blocks())
      if (!inner.contains(block) && !dominators_.dominates(block, inner.getHeader()) &&
          !dominators_.dominates(inner.getExitBlock(), block))
        return false;
    BasicBlock* body = inner.getHeader();
    if (UnrollAndJamLoop(&loop, together, trip_count, together, /*UnrollRemainder=*/false, &loops_, &evolution_,
                         &dominators_, &assumptions_, &target_, &remarks_) == LoopUnrollResult::Unmodified)
      return false;
    merge_counters(*loops_.getLoopFor(body));
    return true;
  }

  // The copies' counters are one: what they load alike is at one address.
  void merge_counters(Loop& inner) {
    evolution_.forgetLoop(&inner);
    SCEVExpander expander(evolution_, inner.getHeader()->getDataLayout(), "counter");
    SmallVector<WeakTrackingVH> dead;
    expander.replaceCongruentIVs(&inner, &dominators_, dead, &target_);
    RecursivelyDeleteTriviallyDeadInstructionsPermissive(dead);
  }

  LoopInfo& loops_;
  DominatorTree& dominators_;
  ScalarEvolution& evolution_;
  AssumptionCache& assumptions_;
  const TargetTransformInfo& target_;
  OptimizationRemarkEmitter remarks_;
  const VectorIsa& isa_;
};

}  // namespace

bool interleave_simdgroups(Function& function, FunctionAnalysisManager& analyses, const VectorIsa& vector_isa) {
  return Interleaving(function, analyses, vector_isa).run();
}

}  // namespace kiln
