#include "compiler/passes/leave_first.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "compiler/passes/divergence.h"
#include "compiler/passes/exchange_sites.h"

namespace kiln {

using namespace llvm;

namespace {

bool writes(const BasicBlock& block) {
  return any_of(block, [](const Instruction& instruction) { return instruction.mayWriteToMemory(); });
}

// From the block's end one might go on instead.
void lead_to(BasicBlock& goes_on, BasicBlock& block) {
  Instruction* branch = block.getTerminator();
  BasicBlock* rest = SplitBlock(&block, branch);
  block.getTerminator()->eraseFromParent();
  IRBuilder<> builder(&block);
  builder.CreateCondBr(builder.CreateCall(&never_function(*block.getModule())), &goes_on, rest);
}

}  // namespace

bool leave_first(Function& function, FunctionAnalysisManager& analyses, const Blocks& barriers) {
  const Blocks leading = leading_to(barriers);
  if (leading.empty()) return false;
  auto& divergence = analyses.getResult<DivergenceAnalysis>(function);
  auto& dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  struct Leaving {
    BasicBlock *fork, *goes_on;
    SmallVector<BasicBlock*> blocks;  // that only those run who leave here
  };
  SmallVector<Leaving> found;
  for (BasicBlock& block : function) {
    // Where several branches lead to one place, a way on from there would go around the later ones.
    BasicBlock* fork = block.getSinglePredecessor();
    auto* branch = fork ? dyn_cast<BranchInst>(fork->getTerminator()) : nullptr;
    if (!branch || !branch->isConditional() || leading.contains(&block) || !divergence.is_divergent_branch(*fork))
      continue;
    BasicBlock* goes_on = branch->getSuccessor(branch->getSuccessor(0) == &block ? 1 : 0);
    if (!leading.contains(goes_on)) continue;
    Leaving leaving{fork, goes_on, {}};
    dominators.getDescendants(&block, leaving.blocks);
    if (any_of(leaving.blocks, [](const BasicBlock* own) { return writes(*own); })) found.push_back(std::move(leaving));
  }
  for (Leaving& leaving : found) {
    SmallVector<BasicBlock*> ends;
    for (BasicBlock* block : leaving.blocks) {
      if (isa<ReturnInst>(block->getTerminator())) ends.push_back(block);
      for (BasicBlock* next : SmallVector<BasicBlock*>(successors(block)))
        if (!is_contained(leaving.blocks, next)) ends.push_back(SplitEdge(block, next));
    }
    BasicBlock* place = SplitEdge(leaving.fork, leaving.goes_on);
    for (BasicBlock* end : ends) lead_to(*place, *end);
  }
  return !found.empty();
}

}  // namespace kiln
