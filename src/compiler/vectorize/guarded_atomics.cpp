#include "compiler/vectorize/guarded_atomics.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "compiler/analysis/divergence.h"
#include "compiler/ir/guard_sinks.h"

namespace kiln {
namespace {

using namespace llvm;

// Instructions that run even if the guard allows no lane. No loads: a load's own guard may have been simplified by what
// is known under this one.
constexpr unsigned kMaxSpeculated = 16;

// The only update of a block, if all other instructions there may be speculated.
AtomicRMWInst* update_in(BasicBlock& block) {
  AtomicRMWInst* update = nullptr;
  unsigned computed = 0;
  for (Instruction& instruction : block) {
    if (instruction.isTerminator()) break;
    auto* atomic = dyn_cast<AtomicRMWInst>(&instruction);
    if (atomic ? update || !atomic->getType()->isFloatTy() || !atomic->use_empty()
               : !isSafeToSpeculativelyExecute(&instruction) || ++computed > kMaxSpeculated)
      return nullptr;
    if (atomic) update = atomic;
  }
  return update;
}

// The branch into the block on a bounds comparison, a guard's or the body's own. Its other successor is the block's
// successor.
BranchInst* guard_of(BasicBlock& block) {
  BasicBlock *before = block.getSinglePredecessor(), *after = block.getSingleSuccessor();
  auto* branch = before ? dyn_cast<BranchInst>(before->getTerminator()) : nullptr;
  if (!branch || !branch->isConditional() || !after || branch->getSuccessor(0) != &block ||
      branch->getSuccessor(1) != after)
    return nullptr;
  const auto* comparison = dyn_cast<ICmpInst>(branch->getCondition());
  if (!comparison || comparison->getPredicate() != ICmpInst::ICMP_ULT ||
      !comparison->getOperand(0)->getType()->isIntegerTy(64))
    return nullptr;
  for (PHINode& phi : after->phis())
    if (phi.getIncomingValueForBlock(&block) != phi.getIncomingValueForBlock(before)) return nullptr;
  return branch;
}

}  // namespace

bool select_guarded_addresses(Function& function, const Divergence& divergence) {
  struct Found {
    BranchInst* guard;
    AtomicRMWInst* update;
  };
  SmallVector<Found> all;
  for (BasicBlock& block : function)
    if (BranchInst* guard = guard_of(block); guard && divergence.is_divergent(guard->getCondition()))
      if (AtomicRMWInst* update = update_in(block)) all.push_back({guard, update});
  if (all.empty()) return false;
  GlobalVariable& sink = make_sink(*function.getParent(), 64);
  for (auto [guard, update] : all) {
    BasicBlock *before = guard->getParent(), *block = update->getParent(), *after = block->getSingleSuccessor();
    // What is known of values under the guard is not known before it.
    for (Instruction& instruction : *block) {
      instruction.dropPoisonGeneratingAnnotations();
      instruction.dropUBImplyingAttrsAndMetadata();
    }
    IRBuilder<> builder(update);
    Value* address = builder.CreateSelect(guard->getCondition(), update->getPointerOperand(), &sink);
    update->setOperand(AtomicRMWInst::getPointerOperandIndex(), address);
    before->splice(guard->getIterator(), block, block->begin(), block->getTerminator()->getIterator());
    builder.SetInsertPoint(guard);
    builder.CreateBr(after);
    guard->eraseFromParent();
    after->removePredecessor(block, /*KeepOneInputPHIs=*/true);
    block->eraseFromParent();
  }
  for (const Found& found : all)
    if (BasicBlock* after = found.update->getParent()->getSingleSuccessor()) MergeBlockIntoPredecessor(after);
  return true;
}

}  // namespace kiln
