#include "compiler/vectorize/loop_unswitching.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include "compiler/ir/loop_copies.h"
#include "compiler/ir/remarks.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr unsigned kMostOfUnswitchedLoop = 200, kMostLoops = 4;

// A select of a divergent and a uniform value by a uniform condition.
bool chooses_whether_divergent(const SelectInst& select, const Divergence& divergence) {
  auto is_divergent = [&](const Value* value) { return divergence.is_divergent(value); };
  return select.getType()->isIntegerTy() && !isa<Constant>(select.getCondition()) &&
         !is_divergent(select.getCondition()) &&
         is_divergent(select.getTrueValue()) != is_divergent(select.getFalseValue());
}

bool may_be_copied(const Loop& loop) {
  size_t instructions = 0;
  for (const BasicBlock* block : loop.blocks()) {
    instructions += block->size();
    for (const Instruction& instruction : *block)
      if (const auto* call = dyn_cast<CallBase>(&instruction);
          call && (call->isConvergent() || call->cannotDuplicate()))
        return false;
  }
  return instructions <= kMostOfUnswitchedLoop;
}

// The loop of which the use is the counter's first value, or a bound with which a counter is compared.
Loop* loop_bounded_by(const Use& use, LoopInfo& loops) {
  if (auto* phi = dyn_cast<PHINode>(use.getUser())) {
    Loop* loop = loops.getLoopFor(phi->getParent());
    return loop && loop->getHeader() == phi->getParent() && !loop->contains(phi->getIncomingBlock(use)) ? loop
                                                                                                        : nullptr;
  }
  auto* comparison = dyn_cast<ICmpInst>(use.getUser());
  Loop* loop = comparison ? loops.getLoopFor(comparison->getParent()) : nullptr;
  const bool is_exit = loop && any_of(comparison->users(), [&](const User* user) {
                         auto* branch = dyn_cast<BranchInst>(user);
                         return branch && loop->isLoopExiting(branch->getParent());
                       });
  return is_exit ? loop : nullptr;
}

}  // namespace

bool unswitch_loops(Function& function, const Divergence& divergence, FunctionAnalysisManager& analyses) {
  auto& loops = analyses.getResult<LoopAnalysis>(function);
  auto& dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  // A loop, and what chooses its bound.
  MapVector<Loop*, SelectInst*> found;
  for (BasicBlock& block : function)
    for (Instruction& instruction : block) {
      auto* select = dyn_cast<SelectInst>(&instruction);
      if (!select || !chooses_whether_divergent(*select, divergence)) continue;
      for (const Use& use : select->uses())
        if (Loop* loop = loop_bounded_by(use, loops); loop && !loop->contains(select)) found.insert({loop, select});
    }
  bool changed = false;
  unsigned count = 0;
  for (auto [loop, select] : found) {
    if (count == kMostLoops || !may_be_copied(*loop)) continue;
    if (!loop->isLoopSimplifyForm())
      changed |= simplifyLoop(loop, &dominators, &loops, /*SE=*/nullptr, /*AC=*/nullptr, /*MSSAU=*/nullptr,
                              /*PreserveLCSSA=*/false);
    if (!loop->isLoopSimplifyForm()) continue;
    formLCSSARecursively(*loop, dominators, &loops, /*SE=*/nullptr);
    remark("loop-unswitching", *select, "one loop for lanes whose bounds differ and one for others");
    const LoopCopy copy = copy_loop(*loop, select->getCondition(), ".else", loops, dominators);
    auto takes = [&](Loop& one, Value* value) {
      select->replaceUsesWithIf(value, [&](Use& use) { return one.contains(cast<Instruction>(use.getUser())); });
    };
    takes(*loop, select->getTrueValue());
    takes(copy.loop, select->getFalseValue());
    ++count;
    changed = true;
  }
  return changed;
}

}  // namespace kiln
