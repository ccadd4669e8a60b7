#include "compiler/lowering/structure_phis.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

namespace kiln {

using namespace llvm;

namespace {

void split(PHINode& phi) {
  SmallDenseMap<unsigned, PHINode*> components;
  for (User* user : make_early_inc_range(phi.users())) {
    auto* part = cast<ExtractValueInst>(user);
    PHINode*& component = components[part->getIndices()[0]];
    if (!component) {
      component = PHINode::Create(part->getType(), phi.getNumIncomingValues(), "", phi.getIterator());
      // Several edges from one block, as of a switch, have the same value.
      SmallDenseMap<BasicBlock*, Value*> parts;
      for (auto [value, block] : zip(phi.incoming_values(), phi.blocks())) {
        IRBuilder<> builder(block->getTerminator());
        Value*& extracted = parts[block];
        if (!extracted) extracted = builder.CreateExtractValue(value, part->getIndices());
        component->addIncoming(extracted, block);
      }
    }
    part->replaceAllUsesWith(component);
    part->eraseFromParent();
  }
  phi.eraseFromParent();
}

}  // namespace

void split_structure_phis(Function& function) {
  for (BasicBlock& block : function)
    for (PHINode& phi : make_early_inc_range(block.phis())) {
      if (!phi.getType()->isStructTy()) continue;
      auto is_component = [](const User* user) {
        const auto* part = dyn_cast<ExtractValueInst>(user);
        return part && part->getNumIndices() == 1;
      };
      if (all_of(phi.users(), is_component)) split(phi);
    }
}

}  // namespace kiln
