#include "compiler/lowering/flow_conditions.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <optional>

namespace kiln {

using namespace llvm;

namespace {

struct FlowCondition {
  Value* condition;
  bool is_complement;
};

// The branch's condition to which the phi is equal, if it only remembers the path from the branch to its block.
std::optional<FlowCondition> condition_of(PHINode& phi, const DominatorTree& dominators, const LoopInfo& loops) {
  if (!phi.getType()->isIntegerTy(1) || phi.getNumIncomingValues() != 2) return std::nullopt;
  BasicBlock* above = dominators.getNode(phi.getParent())->getIDom()->getBlock();
  const int direct = phi.getBasicBlockIndex(above);
  auto* branch = dyn_cast<BranchInst>(above->getTerminator());
  if (direct < 0 || !branch || !branch->isConditional()) return std::nullopt;
  if (const Loop* loop = loops.getLoopFor(above); loop && !loop->contains(&phi)) return std::nullopt;
  auto* past_side = dyn_cast<ConstantInt>(phi.getIncomingValue(static_cast<unsigned>(direct)));
  auto* after_side = dyn_cast<ConstantInt>(phi.getIncomingValue(1 - static_cast<unsigned>(direct)));
  if (!past_side || !after_side || past_side == after_side) return std::nullopt;
  const unsigned side = branch->getSuccessor(0) == phi.getParent() ? 1 : 0;
  const BasicBlockEdge to_side(above, branch->getSuccessor(side));
  if (branch->getSuccessor(side) == phi.getParent() ||
      !dominators.dominates(to_side, phi.getIncomingBlock(1 - static_cast<unsigned>(direct))))
    return std::nullopt;
  return FlowCondition{branch->getCondition(), after_side->isOne() != (side == 0)};
}

// Branches swap their successors instead of using a complement.
void replace(PHINode& phi, const FlowCondition& flow) {
  if (flow.is_complement)
    for (User* user : make_early_inc_range(phi.users()))
      if (auto* branch = dyn_cast<BranchInst>(user)) {
        branch->setCondition(flow.condition);
        branch->swapSuccessors();
      }
  if (!phi.use_empty()) {
    IRBuilder<> builder(phi.getParent(), phi.getParent()->getFirstInsertionPt());
    phi.replaceAllUsesWith(flow.is_complement ? builder.CreateNot(flow.condition) : flow.condition);
  }
  phi.eraseFromParent();
}

}  // namespace

bool replace_flow_phis(Function& function, FunctionAnalysisManager& analyses) {
  const DominatorTree& dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  const LoopInfo& loops = analyses.getResult<LoopAnalysis>(function);
  bool changed = false;
  for (BasicBlock& block : function) {
    if (&block == &function.getEntryBlock() || !dominators.isReachableFromEntry(&block)) continue;
    for (PHINode& phi : make_early_inc_range(block.phis()))
      if (std::optional<FlowCondition> flow = condition_of(phi, dominators, loops)) {
        replace(phi, *flow);
        changed = true;
      }
  }
  return changed;
}

}  // namespace kiln
