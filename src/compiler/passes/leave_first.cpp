#include "compiler/passes/leave_first.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
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

// Whether a way leads there that does not go through `without`.
bool reaches(const BasicBlock& from, const BasicBlock& to, const BasicBlock& without) {
  SmallPtrSet<const BasicBlock*, 16> seen{&without};
  SmallVector<const BasicBlock*> waiting{&from};
  while (!waiting.empty()) {
    const BasicBlock* block = waiting.pop_back_val();
    if (block == &to) return true;
    if (seen.insert(block).second) append_range(waiting, successors(block));
  }
  return false;
}

}  // namespace

bool leave_first(Function& function, FunctionAnalysisManager& analyses, const Blocks& barriers) {
  const Blocks leading = leading_to(barriers);
  if (leading.empty()) return false;
  auto& divergence = analyses.getResult<DivergenceAnalysis>(function);
  auto& dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  // Where some leave: the branches that lead there, and all that only those run who do.
  struct Leaving {
    SmallVector<std::pair<BasicBlock*, BasicBlock*>> forks;  // and where the others go on
    SmallVector<BasicBlock*> blocks;
  };
  SmallVector<Leaving> found;
  for (BasicBlock& block : function) {
    if (leading.contains(&block) || !dominators.isReachableFromEntry(&block)) continue;
    Leaving leaving;
    bool do_some = false;
    for (BasicBlock* fork : predecessors(&block)) {
      auto* branch = dyn_cast<BranchInst>(fork->getTerminator());
      if (!branch || !branch->isConditional() || !leading.contains(fork)) continue;
      BasicBlock* goes_on = branch->getSuccessor(branch->getSuccessor(0) == &block ? 1 : 0);
      if (!leading.contains(goes_on)) continue;
      do_some = do_some || divergence.is_divergent_branch(*fork);
      // In this iteration others may still come here, as from `a || b`.
      if (!reaches(*goes_on, block, *dominators.getNode(&block)->getIDom()->getBlock()))
        leaving.forks.push_back({fork, goes_on});
    }
    if (!do_some || leaving.forks.empty()) continue;
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
    for (auto [fork, goes_on] : leaving.forks) {
      BasicBlock* place = SplitEdge(fork, goes_on);
      for (BasicBlock* end : ends) lead_to(*place, *end);
    }
  }
  return !found.empty();
}

}  // namespace kiln
