#include "compiler/passes/copy_behind.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/CFG.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace kiln {

using namespace llvm;

BlockList behind(BasicBlock& start) {
  BlockList blocks;
  blocks.insert(&start);
  for (unsigned i = 0; i < blocks.size(); ++i)
    for (BasicBlock* next : successors(blocks[i])) blocks.insert(next);
  return blocks;
}

BlockList copy_behind(BranchInst& branch, unsigned way) {
  BasicBlock* fork = branch.getParent();
  BasicBlock* start = branch.getSuccessor(way);
  ValueToValueMapTy map;
  BlockList copies;
  for (BasicBlock* block : behind(*start)) {
    BasicBlock* copy = CloneBasicBlock(block, map, ".leaving", fork->getParent());
    map[block] = copy;
    copies.insert(copy);
  }
  remapInstructionsInBlocks(copies.getArrayRef(), map);
  branch.setSuccessor(way, copies.front());
  for (PHINode& phi : start->phis()) phi.removeIncomingValue(fork, /*DeletePHIIfEmpty=*/false);
  for (BasicBlock* copy : copies) {
    const SmallPtrSet<const BasicBlock*, 4> before(pred_begin(copy), pred_end(copy));
    for (PHINode& phi : make_early_inc_range(copy->phis()))
      for (unsigned i = phi.getNumIncomingValues(); i-- > 0;)
        if (!before.contains(phi.getIncomingBlock(i))) phi.removeIncomingValue(i, /*DeletePHIIfEmpty=*/false);
  }
  return copies;
}

}  // namespace kiln
