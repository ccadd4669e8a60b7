#include "compiler/ir/loop_copies.h"

#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace kiln {

using namespace llvm;

LoopCopy copy_loop(Loop& loop, Value* condition, const char* suffix, LoopInfo& loops, DominatorTree& dominators) {
  Instruction& insertion_point = *loop.getLoopPreheader()->getTerminator();
  BasicBlock* before = insertion_point.getParent();
  BasicBlock* preheader = SplitBlock(before, &insertion_point, &dominators, &loops);
  SmallVector<BasicBlock*> exits;
  loop.getUniqueExitBlocks(exits);
  ValueToValueMapTy map;
  SmallVector<BasicBlock*> blocks;
  Loop* other = cloneLoopWithPreheader(preheader, before, &loop, map, suffix, &loops, &dominators, blocks);
  remapInstructionsInBlocks(blocks, map);
  auto* branch = BranchInst::Create(preheader, other->getLoopPreheader(), condition);
  ReplaceInstWithInst(before->getTerminator(), branch);
  for (BasicBlock* exit : exits)
    for (PHINode& phi : exit->phis())
      for (unsigned i = 0, count = phi.getNumIncomingValues(); i < count; ++i) {
        auto cloned = map.find(phi.getIncomingBlock(i));
        if (cloned == map.end()) continue;
        Value* value = phi.getIncomingValue(i);
        if (auto mapped = map.find(value); mapped != map.end()) value = mapped->second;
        phi.addIncoming(value, cast<BasicBlock>(cloned->second));
      }
  // What a block of the loop dominated behind it can be reached from the copy, too.
  for (BasicBlock* block : loop.blocks())
    for (DomTreeNode* below : SmallVector<DomTreeNode*>(children<DomTreeNode*>(dominators.getNode(block))))
      if (!loop.contains(below->getBlock())) dominators.changeImmediateDominator(below->getBlock(), before);
  return {*other, *branch};
}

}  // namespace kiln
