#include "compiler/vectorize/widener_atomic_memory.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/LowerAtomic.h>

#include <cstddef>

#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/invariant_loads.h"
#include "compiler/ir/sections.h"
#include "compiler/vectorize/widener_argument_bounds.h"
#include "compiler/vectorize/widener_guards.h"
#include "core/cpu_image.h"

namespace kiln::widening {

namespace {

// Whether an address's bits are used in comparisons only, as in a guard.
bool is_only_compared(const Value& bits) {
  return all_of(bits.users(), [](const User* user) {
    return isa<ICmpInst>(user) || (isa<BinaryOperator, ZExtInst, TruncInst>(user) && is_only_compared(*user));
  });
}

// Collects an array's uses: striped updates, and comparisons of addresses. Returns false for any other use.
bool collect_updates(const Value& pointer, SmallVectorImpl<AtomicRMWInst*>& updates) {
  return all_of(pointer.uses(), [&](const Use& use) {
    auto* user = cast<Instruction>(use.getUser());
    if (isa<ICmpInst>(user) || (isa<PtrToIntInst>(user) && is_only_compared(*user))) return true;
    if (isa<GetElementPtrInst>(user)) return collect_updates(*user, updates);
    if (auto* select = dyn_cast<SelectInst>(user))
      return is_sink(select->getFalseValue()) && collect_updates(*select, updates);
    auto* atomic = dyn_cast<AtomicRMWInst>(user);
    if (!atomic || use.getOperandNo() != AtomicRMWInst::getPointerOperandIndex() || !is_striped_update(*atomic) ||
        atomic->getOrdering() != AtomicOrdering::Monotonic)
      return false;
    updates.push_back(atomic);
    return true;
  });
}

}  // namespace

AtomicMemory::AtomicMemory(Function& from, uint64_t flag_offset, function_ref<bool(uint64_t)> is_output,
                           Strides& strides, Scratch& scratch, Lanes& lanes)
    : from_(from), strides_(strides), scratch_(scratch), lanes_(lanes), layout_(lanes.layout()) {
  if (flag_offset == 0 || none_of(instructions(from_), [](const Instruction& i) { return isa<AtomicRMWInst>(i); }))
    return;
  IRBuilder<> builder(&*from_.getEntryBlock().getFirstInsertionPt());
  exclusive_ = builder.CreateIsNotNull(load_invariant(builder, builder.getInt32Ty(), from_.getArg(0), flag_offset));
  find_updated_arrays(is_output);
}

Value* AtomicMemory::insert_scalar(Instruction& instruction, Instruction& scalar_copy, bool may_be_exclusive,
                                   IRBuilder<>& builder) {
  auto* atomic = dyn_cast<AtomicRMWInst>(&scalar_copy);
  Value* exclusive = atomic && may_be_exclusive ? is_exclusive(instruction) : nullptr;
  auto emit_locked = [&]() -> Values {
    Value* begin = atomic ? updated_arrays_.lookup(&instruction) : nullptr;
    if (!begin) return {builder.Insert(&scalar_copy)};
    AllocaInst* operand = scratch_.acquire(atomic->getType());
    builder.CreateStore(atomic->getValOperand(), operand);
    update_striped_range(*atomic, atomic->getPointerOperand(), operand, builder.getInt32(1), std::nullopt,
                         updated_array(instruction), builder);
    scratch_.release(operand);
    Value* unused_result = Constant::getNullValue(atomic->getType());
    scalar_copy.deleteValue();
    return {unused_result};
  };
  if (!exclusive) return emit_locked()[0];
  auto emit_plain = [&]() -> Values {
    Value* old_value = builder.CreateAlignedLoad(atomic->getType(), atomic->getPointerOperand(), atomic->getAlign());
    Value* new_value = buildAtomicRMWValue(atomic->getOperation(), builder, old_value, atomic->getValOperand());
    builder.CreateAlignedStore(new_value, atomic->getPointerOperand(), atomic->getAlign());
    return {old_value};
  };
  if (isa<Constant>(exclusive)) {
    Value* old_value = emit_plain()[0];
    scalar_copy.deleteValue();
    return old_value;
  }
  return lanes_.create_if_else({lanes_.scalar(exclusive), "plain", "atomic", false}, builder, emit_plain,
                               emit_locked)[0];
}

// Outputs only: a launch has exclusive access to its outputs, not to its inputs.
void AtomicMemory::find_updated_arrays(function_ref<bool(uint64_t)> is_output) {
  if (any_of(instructions(from_), [](const Instruction& i) { return isa<IntToPtrInst>(i); })) return;
  auto is_arguments = [&](const Value* value) { return is_arguments_of_launch(*value, from_); };
  MapVector<uint64_t, SmallVector<LoadInst*>> arrays;
  for (Instruction& instruction : instructions(from_)) {
    auto* load = dyn_cast<LoadInst>(&instruction);
    if (!load || !load->getType()->isPointerTy()) continue;
    APInt offset(64, 0);
    const Value* base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout_, offset, true);
    SmallVector<const Value*> objects;
    getUnderlyingObjects(base, objects);
    if (is_arguments(base))
      arrays[offset.getZExtValue()].push_back(load);
    else if (any_of(objects, is_arguments))
      return;  // one of several arrays
  }
  for (auto& [field, begins] : arrays) {
    if (!is_output || !is_output(field / sizeof(CpuArgument))) continue;
    SmallVector<std::pair<AtomicRMWInst*, LoadInst*>> all;
    bool is_known = all_of(begins, [&](LoadInst* begin) {
      SmallVector<AtomicRMWInst*> updates;
      bool has_other_uses = !collect_updates(*begin, updates);
      for (AtomicRMWInst* update : updates) all.push_back({update, begin});
      return !has_other_uses;
    });
    // For a single lane an atomic is faster than a lock.
    is_known = is_known && all_of(all, [&](auto& one) {
                 Value* pointer = guarded_address_of(*one.first).address;
                 return lanes_.is_divergent(pointer) && strides_.element_stride(pointer, sizeof(float)) == 1;
               });
    if (is_known) updated_arrays_.insert(all.begin(), all.end());
  }
}

std::optional<UpdatedArray> AtomicMemory::updated_array(const Instruction& update) {
  Value* begin = updated_arrays_.lookup(&update);
  if (!begin) return std::nullopt;
  return UpdatedArray{lanes_.scalar(from_.getArg(0)), lanes_.scalar(begin)};
}

Value* AtomicMemory::is_exclusive(Instruction& instruction) const {
  auto& atomic = cast<AtomicRMWInst>(instruction);
  const auto* variable = dyn_cast<GlobalVariable>(getUnderlyingObject(guarded_address_of(atomic).address));
  if (variable && variable->getSection() == kThreadgroupSection) return ConstantInt::getTrue(lanes_.context());
  return exclusive_;
}

}  // namespace kiln::widening
