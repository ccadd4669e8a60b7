#include "compiler/codegen/extension_uses.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace kiln {
namespace {

using namespace llvm;

// With fewer uses CodeGenPrepare is fast.
constexpr unsigned kFewestUses = 64;

bool is_live_out(const Instruction& value) {
  return any_of(value.users(),
                [&](const User* user) { return cast<Instruction>(user)->getParent() != value.getParent(); });
}

void truncate_uses(Instruction& narrow, CastInst& wide) {
  SmallVector<Use*, kFewestUses> uses;
  for (Use& use : narrow.uses()) {
    auto* user = cast<Instruction>(use.getUser());
    if (user->getParent() == narrow.getParent()) continue;
    // Like CodeGenPrepare: these users would reload the value just before them.
    if (isa<PHINode, LoadInst, StoreInst>(user)) return;
    uses.push_back(&use);
  }
  DenseMap<BasicBlock*, Value*> truncations;
  for (Use* use : uses) {
    BasicBlock* block = cast<Instruction>(use->getUser())->getParent();
    Value*& truncation = truncations[block];
    if (!truncation) truncation = IRBuilder<>(block, block->getFirstInsertionPt()).CreateTrunc(&wide, narrow.getType());
    use->set(truncation);
  }
}

}  // namespace

void truncate_extended_values(Function& function) {
  for (Instruction& instruction : instructions(function)) {
    if (!isa<ZExtInst, SExtInst>(instruction) || !instruction.getType()->isIntegerTy(64)) continue;
    auto* narrow = dyn_cast<Instruction>(instruction.getOperand(0));
    if (!narrow || narrow->getParent() != instruction.getParent() || !narrow->getType()->isIntegerTy(32)) continue;
    if (narrow->hasNUsesOrMore(kFewestUses) && is_live_out(instruction))
      truncate_uses(*narrow, cast<CastInst>(instruction));
  }
}

}  // namespace kiln
