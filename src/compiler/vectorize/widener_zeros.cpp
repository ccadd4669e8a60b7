#include "compiler/vectorize/widener_zeros.h"

#include <llvm/Analysis/ValueTracking.h>

#include "compiler/ir/code_motion.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/vectorize/widener_guards.h"

namespace kiln::widening {

void ZeroedLoads::find(Function& from, function_ref<bool(LoadInst&)> is_taken) {
  for (BasicBlock& block : from) {
    SmallVector<SelectInst*> selects;
    for (Instruction& instruction : block)
      if (auto* select = dyn_cast<SelectInst>(&instruction)) selects.push_back(select);
    for (SelectInst* select : selects) {
      if (!lanes_.is_divergent(select) || lanes_.is_divergent(select->getCondition()) ||
          select->getType()->isPointerTy())
        continue;
      auto is_zero = [](const Value* value) {
        const auto* constant = dyn_cast<Constant>(value);
        return constant && constant->isNullValue();
      };
      bool keeps_first = is_zero(select->getFalseValue());
      if (keeps_first == is_zero(select->getTrueValue())) continue;
      auto* load = dyn_cast<LoadInst>(select->getOperand(keeps_first ? 1 : 2));
      if (!load || load->getParent() != &block || !load->hasOneUse() || !load->isSimple() ||
          load->getType()->isIntegerTy(1) || !lanes_.is_divergent(load->getPointerOperand()))
        continue;
      if (is_taken(*load)) continue;
      if (strides_.element_stride(guarded_address_of(*load).address, layout_.getTypeStoreSize(load->getType())) != 1)
        continue;
      if (!move_before(select->getCondition(), *load)) continue;
      zeroed_loads_[load] = {select, false};
    }
  }
  // A value that is loaded at its first use occupies no register while other addresses are computed.
  for (auto& [load, zeroed] : zeroed_loads_) {
    bool is_used_in_block = all_of(zeroed.select->users(), [&, load = load](const User* user) {
      const auto* instruction = cast<Instruction>(user);
      return instruction->getParent() == load->getParent() && !isa<PHINode>(instruction) &&
             !instruction->isTerminator();
    });
    if (!is_used_in_block || zeroed.select->use_empty()) continue;
    for (Instruction* next = load->getNextNode(); !next->mayWriteToMemory(); next = next->getNextNode())
      if (next->isTerminator() || is_contained(zeroed.select->users(), next)) {
        zeroed.is_sunk = !next->isTerminator();
        break;
      }
  }
}

bool ZeroedLoads::load(LoadInst& load, IRBuilder<>& builder) {
  auto found = zeroed_loads_.find(&load);
  if (found == zeroed_loads_.end()) return false;
  SelectInst& select = *found->second.select;
  auto [allowed, pointer] = guarded_address_of(load);
  uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  AccessShape shape{bytes, bytes * (kLanes - 1), true};
  std::optional<RangeCheck> check = checks_.check_range(pointer, allowed, shape, builder);
  if (!check) return false;

  GlobalVariable* zeros = zeros_of(*lanes_.function().getParent(), bytes * kLanes);
  Value* condition = lanes_.scalar(select.getCondition());
  // If the condition is undefined either address will do, but it must be one of them.
  if (!isGuaranteedNotToBeUndefOrPoison(condition)) condition = builder.CreateFreeze(condition);
  if (select.getTrueValue() != &load) condition = builder.CreateNot(condition);
  Value* address = builder.CreateSelect(condition, check->base, zeros);
  auto* known = dyn_cast<ConstantInt>(check->condition);
  if (!known || !known->isOne()) {
    // A used load whose lanes are not consecutive: its elements are copied to a buffer.
    AllocaInst* buffer = lanes_.allocate(vector_of(load.getType()));
    auto consecutive = [&]() -> Values { return {address}; };
    auto outside = [&]() -> Values { return {zeros}; };
    auto copied = [&]() -> Values {
      lane_accesses_.load(load, builder);
      builder.CreateStore(lanes_.known_vector(&load), buffer);
      return {buffer};
    };
    auto slow_path = [&] {
      Value* all_outside = checks_.is_outside(*check, shape, builder);
      return all_outside ? lanes_.create_if_else({all_outside, "none", "some", false}, builder, outside, copied)
                         : copied();
    };
    Value* is_ready = builder.CreateOr(builder.CreateNot(condition), check->condition);
    address = lanes_.create_if_else({is_ready, "row", "lanes"}, builder, consecutive, slow_path)[0];
  }
  if (found->second.is_sunk)
    sunk_loads_[&select] = {&load, address};
  else
    lanes_.set_vector(&select, strided_.load_consecutive(load, address, builder));
  return true;
}

void ZeroedLoads::emit_sunk_loads(Instruction& user, IRBuilder<>& builder) {
  if (sunk_loads_.empty()) return;
  for (Value* operand : user.operands()) {
    auto sunk = sunk_loads_.find(operand);
    if (sunk == sunk_loads_.end() || lanes_.known_vector(operand)) continue;
    lanes_.set_vector(operand, strided_.load_consecutive(*sunk->second.load, sunk->second.address, builder));
  }
}

}  // namespace kiln::widening
