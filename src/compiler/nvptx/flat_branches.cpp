#include "compiler/nvptx/flat_branches.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <optional>

#include "compiler/ir/guard_zeros.h"
#include "compiler/nvptx/predicated_accesses.h"
#include "compiler/nvptx/ptx_generator.h"

namespace kiln {
namespace {

using namespace llvm;

// Instructions that all threads execute for those that would have taken the branch. A load that is waited for costs
// some hundred.
constexpr unsigned kMostInstructions = 48;

class Flattener {
 public:
  // Inner branches first: their flattened code is part of the outer ones.
  void run(Function& function) {
    SmallVector<BasicBlock*> blocks(post_order(&function.getEntryBlock()));
    for (BasicBlock* block : blocks)
      while (!erased_.contains(block) && flatten(*block)) {
      }
  }

 private:
  struct Side {
    BasicBlock *block, *join;
    bool is_true_side;  // whether threads take it if the condition holds
  };

  // The side of a branch that has only one, as in `if (condition) { … }`.
  static std::optional<Side> side_of(BranchInst& branch) {
    for (unsigned i = 0; i < 2; ++i) {
      BasicBlock *side = branch.getSuccessor(i), *join = branch.getSuccessor(1 - i);
      if (side->getSinglePredecessor() == branch.getParent() && side->getSingleSuccessor() == join && side != join &&
          !isa<PHINode>(side->front()))
        return Side{side, join, i == 0};
    }
    return std::nullopt;
  }

  bool flatten(BasicBlock& block) {
    auto* branch = dyn_cast<BranchInst>(block.getTerminator());
    if (!branch || !branch->isConditional()) return false;
    std::optional<Side> side = side_of(*branch);
    if (!side || !is_short(*side->block)) return false;

    IRBuilder<> builder(branch);
    Value* condition = branch->getCondition();
    if (!side->is_true_side) condition = builder.CreateNot(condition);
    for (Instruction& instruction : make_early_inc_range(*side->block)) {
      if (instruction.isTerminator()) break;
      instruction.moveBefore(branch);
      instruction.dropPoisonGeneratingAnnotations();
      predicate(instruction, condition);
    }
    builder.SetInsertPoint(branch);
    for (PHINode& phi : side->join->phis()) {
      Value* inside = phi.getIncomingValueForBlock(side->block);
      Value* outside = phi.getIncomingValueForBlock(&block);
      phi.setIncomingValueForBlock(&block, builder.CreateSelect(condition, inside, outside));
      phi.removeIncomingValue(side->block, /*DeletePHIIfEmpty=*/false);
    }
    builder.CreateBr(side->join);
    branch->eraseFromParent();
    erased_.insert(side->block);
    side->block->eraseFromParent();
    BasicBlock* join = side->join;
    if (join->getSinglePredecessor() == &block && MergeBlockIntoPredecessor(join)) erased_.insert(join);
    return true;
  }

  // Whether the block is short, holds only instructions that can be predicated or speculated, and accesses memory.
  bool is_short(BasicBlock& block) {
    unsigned count = 0;
    bool accesses = false;
    for (Instruction& instruction : block) {
      if (instruction.isTerminator()) break;
      if (++count > kMostInstructions) return false;
      if (auto* load = dyn_cast<LoadInst>(&instruction)) {
        if (load->getPointerAddressSpace() == kParameterSpace) continue;
        if (!load->isSimple() || !(guard_of(load->getPointerOperand()) || can_get_guard(*load))) return false;
        accesses = true;
      } else if (auto* store = dyn_cast<StoreInst>(&instruction)) {
        if (!store->isSimple() || !guard_of(store->getPointerOperand())) return false;
        accesses = true;
      } else if (auto* update = dyn_cast<AtomicRMWInst>(&instruction)) {
        if (!can_be_predicated(*update)) return false;
        accesses = true;
      } else if (updates_.contains(&instruction)) {
        accesses = true;
      } else if (instruction.mayReadOrWriteMemory() || !isSafeToSpeculativelyExecute(&instruction)) {
        return false;
      }
    }
    return accesses;
  }

  // The select between an address and memory of Kiln's own, if it has no other use.
  static SelectInst* guard_of(Value* pointer) {
    auto* guard = dyn_cast<SelectInst>(pointer);
    return guard && guard->hasOneUse() && is_own_memory(guard->getFalseValue()) ? guard : nullptr;
  }

  // The side's own condition may be poison if the branch's does not hold.
  static Value* logical_and(Instruction& insertion_point, Value* condition, Value* own) {
    IRBuilder<> builder(&insertion_point);
    return builder.CreateLogicalAnd(condition, own);
  }

  void predicate(Instruction& instruction, Value* condition) {
    if (auto* update = dyn_cast<AtomicRMWInst>(&instruction)) {
      updates_.insert(predicate_update(*update, condition));
    } else if (updates_.contains(&instruction)) {
      instruction.setOperand(0, logical_and(instruction, condition, instruction.getOperand(0)));
    } else if (Value* pointer = getLoadStorePointerOperand(&instruction)) {
      if (pointer->getType()->getPointerAddressSpace() == kParameterSpace) return;
      SelectInst* guard = guard_of(pointer);
      if (!guard) return add_guard(cast<LoadInst>(instruction), condition);
      guard->moveBefore(&instruction);  // it may be before the branch
      guard->setCondition(logical_and(*guard, condition, guard->getCondition()));
    }
  }

  // Whether the load has no guard, since it is inside for certain or bounds checks are off, and can get one. Memory of
  // the thread's own is faster without.
  static bool can_get_guard(const LoadInst& load) {
    const Value* pointer = load.getPointerOperand();
    return !isa<SelectInst>(pointer) && !isa<AllocaInst>(getUnderlyingObject(pointer)) && can_be_predicated(load);
  }

  // Gives the load a guard.
  static void add_guard(LoadInst& load, Value* condition) {
    IRBuilder<> builder(&load);
    Value* address = builder.CreateAddrSpaceCast(load.getPointerOperand(), builder.getPtrTy());
    const uint64_t bytes = load.getDataLayout().getTypeStoreSize(load.getType());
    Value* zeros = builder.CreateAddrSpaceCast(zeros_of(*load.getModule(), bytes, kGlobalSpace), builder.getPtrTy());
    load.setOperand(LoadInst::getPointerOperandIndex(), builder.CreateSelect(condition, address, zeros));
  }

  SmallPtrSet<Instruction*, 8> updates_;  // with predicates; the predicate is the first operand
  SmallPtrSet<BasicBlock*, 8> erased_;
};

}  // namespace

void flatten_short_branches(Function& function) { Flattener().run(function); }

}  // namespace kiln
