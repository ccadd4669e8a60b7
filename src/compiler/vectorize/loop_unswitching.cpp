#include "compiler/vectorize/loop_unswitching.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include "compiler/ir/loop_copies.h"
#include "compiler/ir/remarks.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr unsigned kMostOfUnswitchedLoop = 200, kMostLoops = 4;

// A select of a divergent and a uniform value by a uniform condition.
bool chooses_whether_divergent(const SelectInst& select, const Divergence& divergence) {
  auto is_divergent = [&](unsigned operand) { return divergence.is_divergent_at(select.getOperandUse(operand)); };
  return select.getType()->isIntegerTy() && !isa<Constant>(select.getCondition()) && !is_divergent(0) &&
         is_divergent(1) != is_divergent(2);
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

// The loop of which the use is a first value, or part of a comparison by which it is left.
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
                         return branch && loop->contains(branch) && loop->isLoopExiting(branch->getParent());
                       });
  return is_exit ? loop : nullptr;
}

}  // namespace

bool unswitch_loops(Function& function, const Divergence& divergence, FunctionAnalysisManager& analyses) {
  auto& loops = analyses.getResult<LoopAnalysis>(function);
  auto& dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  // A loop, and what chooses its bounds: selects by one condition.
  MapVector<Loop*, SmallSetVector<SelectInst*, 2>> found;
  for (BasicBlock& block : function)
    for (Instruction& instruction : block) {
      auto* select = dyn_cast<SelectInst>(&instruction);
      if (!select || !chooses_whether_divergent(*select, divergence)) continue;
      for (const Use& use : select->uses()) {
        Loop* loop = loop_bounded_by(use, loops);
        if (!loop || loop->contains(select)) continue;
        auto& selects = found[loop];
        if (selects.empty() || selects[0]->getCondition() == select->getCondition()) selects.insert(select);
      }
    }
  unsigned count = 0;
  for (auto& [loop, selects] : found) {
    // In simplified form the condition is known at the end of the preheader.
    if (count == kMostLoops || !loop->isLoopSimplifyForm() || !may_be_copied(*loop)) continue;
    formLCSSARecursively(*loop, dominators, &loops, /*SE=*/nullptr);
    remark("loop-unswitching", *selects[0], "one loop for lanes whose bounds differ and one for others");
    const LoopCopy copy = copy_loop(*loop, selects[0]->getCondition(), ".else", loops, dominators);
    auto takes = [](SelectInst& select, Loop& one, Value* value) {
      select.replaceUsesWithIf(value, [&](Use& use) { return one.contains(cast<Instruction>(use.getUser())); });
    };
    for (SelectInst* select : selects) {
      takes(*select, *loop, select->getTrueValue());
      takes(*select, copy.loop, select->getFalseValue());
    }
    ++count;
  }
  return count > 0;
}

}  // namespace kiln
