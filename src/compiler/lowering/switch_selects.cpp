#include "compiler/lowering/switch_selects.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

namespace kiln {
namespace {

using namespace llvm;

constexpr unsigned kMostCases = 16, kMostInstructionsOfCases = 16, kMostResults = 4;

// What costs little more than a select.
bool is_cheap(const Instruction& instruction) {
  const auto* operation = dyn_cast<BinaryOperator>(&instruction);
  const bool is_division = operation && (operation->isIntDivRem() || operation->getOpcode() == Instruction::FDiv ||
                                         operation->getOpcode() == Instruction::FRem);
  return (operation || isa<CastInst, CmpInst, SelectInst, UnaryOperator>(instruction)) && !is_division &&
         isSafeToSpeculativelyExecute(&instruction);
}

class CaseSelects {
 public:
  explicit CaseSelects(SwitchInst& choice) : choice_(choice), block_(*choice.getParent()) {}

  bool run() {
    if (!is_choice_of_values()) return false;
    for (BasicBlock* one : cases_)
      for (Instruction& instruction : make_early_inc_range(*one)) {
        if (instruction.isTerminator()) break;
        instruction.moveBefore(&choice_);
        instruction.dropUBImplyingAttrsAndMetadata();
      }
    IRBuilder<> builder(&choice_);
    for (auto handle : choice_.cases())
      is_case_.push_back(builder.CreateICmpEQ(choice_.getCondition(), handle.getCaseValue()));
    for (PHINode& phi : merge_->phis()) {
      Value* chosen = selected(phi, builder);
      while (phi.getBasicBlockIndex(&block_) >= 0) phi.removeIncomingValue(&block_, /*DeletePHIIfEmpty=*/false);
      phi.addIncoming(chosen, &block_);
    }
    if (!has_default()) choice_.getDefaultDest()->removePredecessor(&block_);
    builder.CreateBr(merge_);
    choice_.eraseFromParent();
    DeleteDeadBlocks(SmallVector<BasicBlock*>(cases_.begin(), cases_.end()));
    return true;
  }

 private:
  bool has_default() const { return !isa<UnreachableInst>(choice_.getDefaultDest()->getFirstNonPHIOrDbg()); }

  // Finds the block where all meet, and the blocks of cases before it.
  bool is_choice_of_values() {
    if (choice_.getNumCases() == 0 || choice_.getNumCases() > kMostCases) return false;
    SmallSetVector<BasicBlock*, 8> targets;
    for (auto handle : choice_.cases()) targets.insert(handle.getCaseSuccessor());
    if (has_default()) targets.insert(choice_.getDefaultDest());
    unsigned instructions = 0;
    for (BasicBlock* target : targets) {
      auto* branch = dyn_cast<BranchInst>(target->getTerminator());
      const bool is_case = branch && branch->isUnconditional() && target->getUniquePredecessor() == &block_ &&
                           !isa<PHINode>(target->front());
      BasicBlock* merge = is_case ? branch->getSuccessor(0) : target;
      if (merge_ && merge != merge_) return false;
      merge_ = merge;
      if (!is_case) continue;
      cases_.insert(target);
      for (const Instruction& instruction : make_range(target->begin(), std::prev(target->end())))
        if (++instructions > kMostInstructionsOfCases || !is_cheap(instruction)) return false;
    }
    const auto results = std::distance(merge_->phis().begin(), merge_->phis().end());
    return merge_ != &block_ && results > 0 && results <= kMostResults;
  }

  Value* value_of(PHINode& phi, BasicBlock* target) const {
    return phi.getIncomingValueForBlock(target == merge_ ? &block_ : target);
  }

  Value* selected(PHINode& phi, IRBuilder<>& builder) const {
    Value* chosen = value_of(phi, has_default() ? choice_.getDefaultDest() : choice_.case_begin()->getCaseSuccessor());
    MapVector<Value*, Value*> conditions;
    for (auto handle : choice_.cases()) {
      Value* value = value_of(phi, handle.getCaseSuccessor());
      if (value == chosen) continue;
      Value*& condition = conditions[value];
      Value* is_this = is_case_[handle.getCaseIndex()];
      condition = condition ? builder.CreateOr(condition, is_this) : is_this;
    }
    for (auto [value, condition] : conditions) chosen = builder.CreateSelect(condition, value, chosen);
    return chosen;
  }

  SwitchInst& choice_;
  BasicBlock& block_;
  BasicBlock* merge_ = nullptr;
  SmallSetVector<BasicBlock*, 8> cases_;
  SmallVector<Value*> is_case_;
};

}  // namespace

bool select_by_cases(Function& function, const Divergence& divergence) {
  SmallVector<SwitchInst*> switches;
  for (BasicBlock& block : function)
    if (auto* choice = dyn_cast<SwitchInst>(block.getTerminator());
        choice && divergence.is_divergent(choice->getCondition()))
      switches.push_back(choice);
  bool changed = false;
  for (SwitchInst* choice : switches) changed |= CaseSelects(*choice).run();
  return changed;
}

}  // namespace kiln
