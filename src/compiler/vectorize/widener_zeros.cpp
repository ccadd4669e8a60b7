#include <llvm/Analysis/ValueTracking.h>

#include "compiler/ir/code_motion.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/vectorize/widener.h"

namespace kiln::widening {

// `inside ? x[i] : 0`, as bodies have it that read first and ask for borders afterwards. Where the question is the same
// in all lanes, the address is chosen, of the row or of zeros, so that nothing is read that is not wanted, and neither
// the guard nor the choice is a branch that depends on data: they are taken one after the other, and a row beyond the
// border is asked for by nobody.
void Widener::find_zeroed_loads() {
  for (BasicBlock& block : from_) {
    SmallVector<SelectInst*> choices;
    for (Instruction& instruction : block)
      if (auto* choice = dyn_cast<SelectInst>(&instruction)) choices.push_back(choice);
    for (SelectInst* choice : choices) {
      if (!is_divergent(choice) || is_divergent(choice->getCondition()) || choice->getType()->isPointerTy()) continue;
      auto is_zero = [](const Value* value) {
        const auto* constant = dyn_cast<Constant>(value);
        return constant && constant->isNullValue();
      };
      bool keeps_first = is_zero(choice->getFalseValue());
      if (keeps_first == is_zero(choice->getTrueValue())) continue;
      auto* load = dyn_cast<LoadInst>(choice->getOperand(keeps_first ? 1 : 2));
      if (!load || load->getParent() != &block || !load->hasOneUse() || !load->isSimple() ||
          load->getType()->isIntegerTy(1) || !is_divergent(load->getPointerOperand()))
        continue;
      if (groups_.contains(load) || group_of_.contains(load) || tiles_.contains(load)) continue;
      if (step_of(place_of(*load).address, layout_.getTypeStoreSize(load->getType())) != 1) continue;
      if (!move_before(choice->getCondition(), *load)) continue;
      zeroed_[load] = {choice, false};
    }
  }
  // What is loaded where it is wanted need not be kept in registers while other addresses are made.
  for (auto& [load, zeroed] : zeroed_) {
    bool is_here = all_of(zeroed.choice->users(), [&, load = load](const User* user) {
      const auto* instruction = cast<Instruction>(user);
      return instruction->getParent() == load->getParent() && !isa<PHINode>(instruction) &&
             !instruction->isTerminator();
    });
    if (!is_here || zeroed.choice->use_empty()) continue;
    for (Instruction* next = load->getNextNode(); !next->mayWriteToMemory(); next = next->getNextNode())
      if (next->isTerminator() || is_contained(zeroed.choice->users(), next)) {
        zeroed.is_late = !next->isTerminator();
        break;
      }
  }
}

bool Widener::choose_address(LoadInst& load, Value* pointer, Value* allowed, IRBuilder<>& builder) {
  auto found = zeroed_.find(&load);
  if (found == zeroed_.end()) return false;
  SelectInst& choice = *found->second.choice;
  uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  Row shape{bytes, bytes * (kLanes - 1), true};
  std::optional<Asked> asked = prefetch_range(pointer, allowed, shape, builder);
  if (!asked) return false;

  GlobalVariable* zeros = zeros_of(*to_.getParent(), bytes * kLanes);
  Value* wanted = scalar(choice.getCondition());
  // Where it is not defined either will do, but the address must be one.
  if (!isGuaranteedNotToBeUndefOrPoison(wanted)) wanted = builder.CreateFreeze(wanted);
  if (choice.getTrueValue() != &load) wanted = builder.CreateNot(wanted);
  Value* address = builder.CreateSelect(wanted, asked->first, zeros);
  auto* known = dyn_cast<ConstantInt>(asked->is_row);
  if (!known || !known->isOne()) {
    // What is wanted and no row lies here and there: it is laid out as one.
    AllocaInst* buffer = IRBuilder<>(allocas_).CreateAlloca(vector_of(load.getType()));
    auto row = [&]() -> Values { return {address}; };
    auto nothing = [&]() -> Values { return {zeros}; };
    auto laid_out = [&]() -> Values {
      widen_load_scalarized(load, builder);
      builder.CreateStore(vectors_[&load], buffer);
      return {buffer};
    };
    auto lanes = [&] {
      Value* none = is_outside(*asked, shape, builder);
      return none ? either({none, "none", "some", false}, builder, nothing, laid_out) : laid_out();
    };
    Value* is_there = builder.CreateOr(builder.CreateNot(wanted), asked->is_row);
    address = either({is_there, "row", "lanes"}, builder, row, lanes)[0];
  }
  if (found->second.is_late)
    late_[&choice] = {&load, address};
  else
    vectors_[&choice] = load_row(load, address, builder);
  return true;
}

// Before each instruction, so that what it wants is there wherever its parts are made.
void Widener::load_late(Instruction& user, IRBuilder<>& builder) {
  if (late_.empty()) return;
  for (Value* operand : user.operands()) {
    auto late = late_.find(operand);
    if (late == late_.end() || vectors_.contains(operand)) continue;
    vectors_[operand] = load_row(*late->second.load, late->second.address, builder);
  }
}

}  // namespace kiln::widening
