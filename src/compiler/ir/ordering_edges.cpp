#include "compiler/ir/ordering_edges.h"

#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "compiler/ir/pseudo_intrinsics.h"

namespace kiln {

using namespace llvm;

BasicBlock& add_ordering_edge(Instruction& before, BasicBlock& to) {
  BasicBlock& block = *before.getParent();
  Module& module = *block.getModule();
  BasicBlock* rest = SplitBlock(&block, &before);
  block.getTerminator()->eraseFromParent();
  IRBuilder<> builder(&block);
  Function& never = pseudo_intrinsic(module, kNeverFunction, FunctionType::get(builder.getInt1Ty(), false));
  builder.CreateCondBr(builder.CreateCall(&never), &to, rest);
  return block;
}

void add_ordering_edges(const BlockList& blocks, BasicBlock& to) {
  SmallVector<BasicBlock*> ends;
  for (BasicBlock* block : blocks) {
    if (isa<ReturnInst>(block->getTerminator())) ends.push_back(block);
    for (BasicBlock* next : SmallVector<BasicBlock*>(successors(block)))
      if (is_real_edge(*block, *next) && !blocks.contains(next)) ends.push_back(SplitEdge(block, next));
  }
  for (BasicBlock* end : ends) {
    BasicBlock& from = add_ordering_edge(*end->getTerminator(), to);
    for (PHINode& phi : to.phis()) phi.addIncoming(PoisonValue::get(phi.getType()), &from);
  }
}

bool has_ordering_edge(const BasicBlock& block) {
  const auto* branch = dyn_cast<BranchInst>(block.getTerminator());
  const auto* condition = branch && branch->isConditional() ? dyn_cast<CallInst>(branch->getCondition()) : nullptr;
  return condition && calls(*condition, kNeverFunction);
}

bool is_real_edge(const BasicBlock& from, const BasicBlock& to) {
  return !has_ordering_edge(from) || from.getTerminator()->getSuccessor(1) == &to;
}

BlockList reachable_from(BasicBlock& start, function_ref<bool(BasicBlock&)> passes) {
  BlockList reached;
  if (passes(start)) reached.insert(&start);
  for (unsigned i = 0; i < reached.size(); ++i)
    for (BasicBlock* next : successors(reached[i]))
      if (is_real_edge(*reached[i], *next) && passes(*next)) reached.insert(next);
  return reached;
}

}  // namespace kiln
