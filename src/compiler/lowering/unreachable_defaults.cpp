#include "compiler/lowering/unreachable_defaults.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

namespace kiln {

using namespace llvm;

// Blocks between a switch and what cannot be reached: an exit of each loop around it. Blocks in a circle end here, too.
static constexpr unsigned kMostBlocks = 16;

// Whether the block does nothing and leads to what cannot be reached.
static bool leads_nowhere(const BasicBlock* block) {
  for (unsigned n = 0; n < kMostBlocks; ++n) {
    const Instruction* first = block->getFirstNonPHIOrDbg();
    if (isa<UnreachableInst>(first)) return true;
    const auto* branch = dyn_cast<BranchInst>(first);
    if (!branch || branch->isConditional()) return false;
    block = branch->getSuccessor(0);
  }
  return false;
}

bool simplify_unreachable_defaults(Function& function) {
  SmallVector<SwitchInst*> switches;
  for (BasicBlock& block : function) {
    auto* one = dyn_cast<SwitchInst>(block.getTerminator());
    if (one && !isa<UnreachableInst>(one->getDefaultDest()->getFirstNonPHIOrDbg()) &&
        leads_nowhere(one->getDefaultDest()))
      switches.push_back(one);
  }
  if (switches.empty()) return false;
  auto* nowhere = BasicBlock::Create(function.getContext(), "unreachable", &function);
  IRBuilder<>(nowhere).CreateUnreachable();
  for (SwitchInst* one : switches) {
    one->getDefaultDest()->removePredecessor(one->getParent());
    one->setDefaultDest(nowhere);
  }
  EliminateUnreachableBlocks(function);
  return true;
}

}  // namespace kiln
