#include "compiler/passes/leave_first.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "compiler/passes/divergence.h"
#include "compiler/passes/exchange_sites.h"

namespace kiln {

using namespace llvm;

namespace {

// Instructions. What is larger stays where it is.
constexpr size_t kMostCopied = 2000;

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

// All to which a way leads.
SmallSetVector<BasicBlock*, 8> behind(BasicBlock& first) {
  SmallSetVector<BasicBlock*, 8> blocks;
  blocks.insert(&first);
  for (unsigned i = 0; i < blocks.size(); ++i)
    for (BasicBlock* next : successors(blocks[i])) blocks.insert(next);
  return blocks;
}

// The branch's way there leads to a copy of its own, whose values nothing else uses.
SmallSetVector<BasicBlock*, 8> copy_behind(BranchInst& branch, unsigned way) {
  BasicBlock* fork = branch.getParent();
  BasicBlock* leaves = branch.getSuccessor(way);
  ValueToValueMapTy map;
  SmallSetVector<BasicBlock*, 8> copies;
  for (BasicBlock* block : behind(*leaves)) {
    BasicBlock* copy = CloneBasicBlock(block, map, ".leaving", fork->getParent());
    map[block] = copy;
    copies.insert(copy);
  }
  remapInstructionsInBlocks(copies.getArrayRef(), map);
  leaves->removePredecessor(fork);
  branch.setSuccessor(way, copies.front());
  for (BasicBlock* copy : copies) {
    const Blocks before(pred_begin(copy), pred_end(copy));
    for (PHINode& phi : make_early_inc_range(copy->phis())) {
      for (unsigned i = phi.getNumIncomingValues(); i-- > 0;)
        if (!before.contains(phi.getIncomingBlock(i))) phi.removeIncomingValue(i, /*DeletePHIIfEmpty=*/false);
      if (phi.getNumIncomingValues() == 1 && phi.getIncomingValue(0) != &phi) {
        phi.replaceAllUsesWith(phi.getIncomingValue(0));
        phi.eraseFromParent();
      }
    }
  }
  return copies;
}

}  // namespace

bool leave_first(Function& function, FunctionAnalysisManager& analyses, const Blocks& barriers) {
  const Blocks leading = leading_to(barriers);
  if (leading.empty()) return false;
  auto& divergence = analyses.getResult<DivergenceAnalysis>(function);
  auto& dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  auto leads = [&](const BasicBlock* block) { return leading.contains(block); };
  SmallVector<const BasicBlock*> parting;  // branches behind which threads go on by different ways
  for (const BasicBlock& block : function)
    if (divergence.is_divergent_branch(block) && count_if(successors(&block), leads) > 1) parting.push_back(&block);
  // Whether not all that go on come to the end of the block and take the same way there.
  auto parts = [&](const BasicBlock& block) {
    return divergence.is_divergent_branch(block) || any_of(parting, [&](const BasicBlock* other) {
             return any_of(successors(other), [&](const BasicBlock* way) {
               return dominators.dominates(BasicBlockEdge(other, way), &block);
             });
           });
  };
  SmallVector<std::pair<BranchInst*, unsigned>> found;  // and which way leaves
  SmallPtrSet<const BranchInst*, 8> are_apart;          // that is nobody else's
  size_t copied = 0;
  for (BasicBlock& block : function) {
    auto* branch = dyn_cast<BranchInst>(block.getTerminator());
    if (!branch || !branch->isConditional()) continue;
    const bool first = leads(branch->getSuccessor(0));
    if (first == leads(branch->getSuccessor(1)) || !parts(block)) continue;
    BasicBlock* leaves = branch->getSuccessor(first ? 1 : 0);
    const SmallSetVector<BasicBlock*, 8> blocks = behind(*leaves);
    if (none_of(blocks, [](const BasicBlock* own) { return writes(*own); })) continue;
    const BasicBlockEdge edge(&block, leaves);
    if (all_of(blocks, [&](const BasicBlock* own) { return dominators.dominates(edge, own); }))
      are_apart.insert(branch);
    else
      for (const BasicBlock* own : blocks) copied += own->size();
    found.push_back({branch, first ? 1 : 0});
  }
  if (copied > kMostCopied) return false;
  for (auto [branch, way] : found) {
    if (branch->getSuccessor(1 - way)->getSinglePredecessor()) FoldSingleEntryPHINodes(branch->getSuccessor(1 - way));
    BasicBlock* goes_on = SplitEdge(branch->getParent(), branch->getSuccessor(1 - way));
    for (BasicBlock* block :
         are_apart.contains(branch) ? behind(*branch->getSuccessor(way)) : copy_behind(*branch, way))
      if (isa<ReturnInst>(block->getTerminator())) lead_to(*goes_on, *block);
  }
  EliminateUnreachableBlocks(function);
  return !found.empty();
}

}  // namespace kiln
