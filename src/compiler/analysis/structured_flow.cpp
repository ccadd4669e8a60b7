#include "compiler/analysis/structured_flow.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/InstIterator.h>

#include "compiler/ir/lane_operations.h"

namespace kiln {

using namespace llvm;

StructuredFlow::StructuredFlow(Function& function, FunctionAnalysisManager& analyses)
    : loops_(analyses.getResult<LoopAnalysis>(function)),
      post_dominators_(analyses.getResult<PostDominatorTreeAnalysis>(function)) {
  find_divergent(function, analyses.getResult<DivergenceAnalysis>(function));
}

void StructuredFlow::find_divergent(Function& function, const Divergence& divergence) {
  for (Instruction& instruction : instructions(function))
    if (divergence.is_divergent(&instruction)) divergent_.insert(&instruction);
  // A value that leaves a loop which lanes leave in different iterations is divergent.
  for (Loop* loop : loops_.getLoopsInPreorder()) {
    if (!is_divergent_loop(*loop)) continue;
    SmallVector<BasicBlock*> exits;
    loop->getUniqueExitBlocks(exits);
    for (BasicBlock* exit : exits)
      for (PHINode& phi : exit->phis()) divergent_.insert(&phi);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (Instruction& instruction : instructions(function)) {
      if (is_divergent(&instruction) || is_uniform_collective(&instruction)) continue;
      if (any_of(instruction.operands(), [&](const Use& use) { return is_divergent(use.get()); })) {
        divergent_.insert(&instruction);
        changed = true;
      }
    }
  }
}

bool StructuredFlow::is_divergent_branch(const BasicBlock& block) const {
  const auto* branch = dyn_cast<BranchInst>(block.getTerminator());
  return branch && branch->isConditional() && is_divergent(branch->getCondition());
}

bool StructuredFlow::is_divergent_loop(const Loop& loop) const {
  SmallVector<BasicBlock*> exiting;
  loop.getExitingBlocks(exiting);
  return any_of(exiting, [&](BasicBlock* block) { return is_divergent_branch(*block); });
}

std::string StructuredFlow::check_structure(Function& function) const {
  for (BasicBlock& block : function) {
    if (!isa<BranchInst, ReturnInst, UnreachableInst>(block.getTerminator())) return "a branch of an unknown kind";
    if (!is_divergent_branch(block)) continue;
    auto* branch = cast<BranchInst>(block.getTerminator());
    Loop* loop = loops_.getLoopFor(&block);
    bool leaves = loop && (!loop->contains(branch->getSuccessor(0)) || !loop->contains(branch->getSuccessor(1)));
    if (leaves && loop->getLoopLatch() != &block) return "a loop that threads leave in its middle";
    if (!leaves && !join_of(*branch)) return "a branch without a join";
  }
  for (Loop* loop : loops_.getLoopsInPreorder()) {
    if (!loop->getLoopPreheader() || !loop->getLoopLatch()) return "a loop with several entries or latches";
    if (is_divergent_loop(*loop) && !loop->getExitingBlock()) return "a loop with several exits";
  }
  return "";
}

BasicBlock* StructuredFlow::join_of(BranchInst& branch) const {
  for (BasicBlock* successor : branch.successors())
    if (post_dominators_.dominates(successor, branch.getParent())) return successor;
  return nullptr;
}

}  // namespace kiln
