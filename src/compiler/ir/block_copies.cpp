#include "compiler/ir/block_copies.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace kiln {

using namespace llvm;

BlockList copy_for(ArrayRef<Way> ways, const BlockList& blocks) {
  ValueToValueMapTy map;
  BlockList copies;
  for (BasicBlock* block : blocks) {
    BasicBlock* copy = CloneBasicBlock(block, map, ".leaving", block->getParent());
    map[block] = copy;
    copies.insert(copy);
  }
  remapInstructionsInBlocks(copies.getArrayRef(), map);
  for (auto [from, to] : ways) {
    from->getTerminator()->replaceSuccessorWith(to, cast<BasicBlock>(map[to]));
    for (PHINode& phi : to->phis())
      phi.removeIncomingValueIf([&](unsigned i) { return phi.getIncomingBlock(i) == from; },
                                /*DeletePHIIfEmpty=*/false);
  }
  for (auto [block, copy] : zip(blocks, copies)) {
    const SmallPtrSet<const BasicBlock*, 4> before(pred_begin(copy), pred_end(copy));
    for (PHINode& phi : copy->phis())
      phi.removeIncomingValueIf([&](unsigned i) { return !before.contains(phi.getIncomingBlock(i)); },
                                /*DeletePHIIfEmpty=*/false);
    // Edges out of the blocks exist twice now.
    for (BasicBlock* next : successors(block)) {
      if (blocks.contains(next)) continue;
      for (PHINode& phi : next->phis()) {
        Value* value = phi.getIncomingValueForBlock(block);
        auto mapped = map.find(value);
        phi.addIncoming(mapped == map.end() ? value : static_cast<Value*>(mapped->second), copy);
      }
    }
  }
  return copies;
}

}  // namespace kiln
