#include "compiler/vectorize/widener_interleaved.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

#include "compiler/vectorize/widener_guards.h"

namespace kiln::widening {

static Values operands_of(ArrayRef<Value*> members, unsigned i) {
  Values operands;
  for (Value* member : members) operands.push_back(cast<Instruction>(member)->getOperand(i));
  return operands;
}

// Both guards must allow the same lanes: they are the same guard, or they compare with the same limit, and their
// offsets differ by as much as the addresses.
bool InterleavedAccesses::is_interleaved_with(const AccessGroup& group, Instruction& access, Member& member) {
  Instruction& first = *group[0].access;
  Type* type = getLoadStoreType(&access);
  if (type != getLoadStoreType(&first)) return false;
  uint64_t bytes = layout_.getTypeStoreSize(type);
  auto [allowed, address] = guarded_address_of(access);
  auto [first_allowed, first_address] = guarded_address_of(first);
  if ((allowed == nullptr) != (first_allowed == nullptr)) return false;
  uint64_t step = strides_.element_stride(first_address, bytes);
  if (step < 2 || strides_.element_stride(address, bytes) != step) return false;
  std::optional<int64_t> offset = distance(first_address, address, bytes, evolution_);
  if (!offset) return false;
  if (allowed != first_allowed) {
    auto *one = dyn_cast<ICmpInst>(allowed), *other = dyn_cast<ICmpInst>(first_allowed);
    if (!one || !other || one->getPredicate() != ICmpInst::ICMP_ULT || other->getPredicate() != ICmpInst::ICMP_ULT ||
        one->getOperand(1) != other->getOperand(1) ||
        distance(other->getOperand(0), one->getOperand(0), bytes, evolution_) != offset)
      return false;
  }
  int64_t lowest = *offset, highest = *offset;
  for (const Member& other : group) {
    lowest = std::min(lowest, other.offset);
    highest = std::max(highest, other.offset);
  }
  if (highest - lowest >= static_cast<int64_t>(step)) return false;
  member = {&access, *offset};
  return true;
}

void InterleavedAccesses::find_load_groups(BasicBlock& block) {
  auto is_candidate = [&](LoadInst& load) { return lanes_.is_divergent(load.getPointerOperand()); };
  auto can_join = [&](const AccessGroup& group, LoadInst& load, Member& member) {
    return is_interleaved_with(group, load, member);
  };
  group_loads(block, is_candidate, can_join, [&](const AccessGroup& group) {
    groups_[group[0].access] = group;
    for (const Member& member : group) group_of_[member.access] = group[0].access;
  });
}

// Stores are deferred to the last of their group: nothing in between accesses memory (vectorize/cluster_stores.h).
void InterleavedAccesses::find_store_groups(BasicBlock& block) {
  AccessGroup group;
  auto close = [&] {
    if (group.size() > 1) {
      for (const Member& member : ArrayRef(group).drop_back()) deferred_stores_.insert(member.access);
      groups_[group.back().access] = group;
    }
    group.clear();
  };
  for (Instruction& instruction : block) {
    auto* store = dyn_cast<StoreInst>(&instruction);
    bool is_candidate = store && store->isSimple() && lanes_.is_divergent(store->getPointerOperand()) &&
                        !store->getValueOperand()->getType()->isIntegerTy(1) && !tiles_.is_at(*store) &&
                        !tiles_.is_deferred(*store);
    if (!is_candidate) {
      if (instruction.mayReadOrWriteMemory() && !instruction.hasMetadata(LLVMContext::MD_invariant_load)) close();
      continue;
    }
    Member member{store, 0};
    if (!group.empty() && (!is_interleaved_with(group, *store, member) ||
                           any_of(group, [&](const Member& other) { return other.offset == member.offset; }))) {
      close();
      member.offset = 0;
    }
    group.push_back(member);
  }
  close();
}

void InterleavedAccesses::find(BasicBlock& block) {
  find_load_groups(block);
  find_store_groups(block);
}

bool InterleavedAccesses::load(LoadInst& load, IRBuilder<>& builder) {
  auto group = groups_.find(&load);
  if (group == groups_.end()) return false;
  load_group(group->second, builder);
  return true;
}

bool InterleavedAccesses::store(StoreInst& store, IRBuilder<>& builder) {
  if (deferred_stores_.contains(&store)) return true;
  auto group = groups_.find(&store);
  if (group == groups_.end()) return false;
  store_group(group->second, builder);
  return true;
}

void InterleavedAccesses::load_group(const AccessGroup& group, IRBuilder<>& builder) {
  int64_t lowest = lowest_offset(group);
  auto& load = cast<LoadInst>(lowest_access(group));
  auto [allowed, pointer] = guarded_address_of(load);
  uint64_t bytes = layout_.getTypeStoreSize(load.getType()), step = strides_.element_stride(pointer, bytes);
  SmallVector<uint64_t> indices;
  Values by_index(step);
  for (const Member& member : group) {
    indices.push_back(static_cast<uint64_t>(member.offset - lowest));
    by_index[indices.back()] = member.access;
  }
  const bool is_complete = !is_contained(by_index, nullptr);
  // Without a bounds check the array may end with the last lane's last member. All lanes are active then, and what is
  // between their members is in the array, too.
  const bool is_checked = allowed && lanes_.is_divergent(allowed);
  const uint64_t last = *llvm::max_element(indices);
  const uint64_t num_elements = is_checked ? step * kLanes : step * (kLanes - 1) + last + 1;
  const bool keeps_registers = is_complete && isPowerOf2_64(step) && is_word(bytes);
  // Besides the members, return the registers in their order in memory: values stored back in this order need
  // no deinterleaving.
  auto vectorized = [&](Value* address) {
    Values registers;
    Values results = strided_.load_strided({load, address, num_elements}, step, indices, builder,
                                           keeps_registers ? &registers : nullptr);
    if (keeps_registers) append_range(results, registers);
    return results;
  };
  auto scalarized = [&]() -> Values {
    Values results;
    for (const Member& member : group) {
      auto* one = cast<LoadInst>(member.access);
      lane_accesses_.load(*one, builder);
      results.push_back(lanes_.known_vector(one));
    }
    if (!keeps_registers) return results;
    Values members;
    for (Value* member : by_index) members.push_back(lanes_.known_vector(member));
    append_range(results, strided_.interleaved(members, builder));
    return results;
  };
  AccessShape shape{bytes, (num_elements - 1) * bytes, is_complete || !is_checked, true};
  Values results = checks_.emit_by_shape(pointer, allowed, shape, builder, vectorized, scalarized);
  for (auto [member, result] : zip(group, results)) lanes_.set_vector(member.access, result);
  if (keeps_registers) registers_[group[0].access] = Values(drop_begin(results, group.size()));
}

void InterleavedAccesses::store_group(const AccessGroup& group, IRBuilder<>& builder) {
  int64_t lowest = lowest_offset(group);
  auto& store = cast<StoreInst>(lowest_access(group));
  auto [allowed, pointer] = guarded_address_of(store);
  Type* element = store.getValueOperand()->getType();
  uint64_t bytes = layout_.getTypeStoreSize(element), step = strides_.element_stride(pointer, bytes);
  Values values(step);
  for (const Member& member : group)
    values[static_cast<uint64_t>(member.offset - lowest)] = cast<StoreInst>(member.access)->getValueOperand();
  uint64_t last = step - 1;
  while (!values[last]) --last;
  bool is_complete = !is_contained(values, nullptr);
  auto vectorized = [&](Value* address) -> Values {
    unsigned nodes = 0;
    Values registers;
    if (is_complete && can_stay_interleaved(values, nodes)) {
      registers = compute_interleaved(values, builder);
    } else {
      Values members;
      for (Value* value : values)
        members.push_back(value ? lanes_.vector(value, builder) : PoisonValue::get(vector_of(element)));
      registers = strided_.interleaved(members, builder);
    }
    const unsigned width = lanes_.register_lanes(element);
    for (unsigned first = 0; first < kLanes * step; first += width) {
      Value* to = builder.CreateConstGEP1_32(element, address, first);
      Value* part = registers[first / width];
      // Without masks all lanes are active here.
      if (is_complete && (is_all(lanes_.mask()) || !lanes_.can_mask(bytes))) {
        builder.CreateAlignedStore(part, to, store.getAlign());
        continue;
      }
      SmallVector<int> sources;
      SmallVector<Constant*> is_member;
      for (unsigned i = first; i < first + width; ++i) {
        sources.push_back(static_cast<int>(i / step));
        is_member.push_back(builder.getInt1(values[i % step] != nullptr));
      }
      Value* mask = builder.CreateShuffleVector(lanes_.mask(), sources);
      builder.CreateMaskedStore(part, to, store.getAlign(), builder.CreateAnd(mask, ConstantVector::get(is_member)));
    }
    return {};
  };
  auto scalarized = [&]() -> Values {
    for (const Member& member : group) lane_accesses_.store(cast<StoreInst>(*member.access), builder);
    return {};
  };
  AccessShape shape{bytes, (step * (kLanes - 1) + last) * bytes, true};
  // What lies between members is masked.
  if (!is_complete && !lanes_.can_mask(bytes))
    scalarized();
  else
    checks_.emit_by_shape(pointer, allowed, shape, builder, vectorized, scalarized);
}

// Whether the members' values are the same arithmetic on uniform values and on loads in this order: then it can be done
// on interleaved registers.
bool InterleavedAccesses::can_stay_interleaved(ArrayRef<Value*> members, unsigned& nodes) {
  if (++nodes > 32) return false;
  Value* first = members[0];
  if (!lanes_.is_divergent(first)) return all_equal(members);
  if (auto* load = dyn_cast<LoadInst>(first)) {
    const Instruction* leader = group_of_.lookup(load);
    if (!leader || !registers_.contains(leader)) return false;
    const AccessGroup& group = groups_[leader];
    int64_t lowest = lowest_offset(group);
    return registers_[leader].size() == members.size() * kLanes / lanes_.register_lanes(load->getType()) &&
           all_of(enumerate(members), [&](auto member) {
             return any_of(group, [&](const Member& one) {
               return one.access == member.value() && one.offset - lowest == static_cast<int64_t>(member.index());
             });
           });
  }
  auto* one = dyn_cast<Instruction>(first);
  if (!one || lanes_.is_postponed(one)) return false;
  auto* call = dyn_cast<IntrinsicInst>(one);
  bool is_simple = isa<UnaryOperator>(one) || (isa<BinaryOperator>(one) && !one->isIntDivRem()) ||
                   (call && (call->getIntrinsicID() == Intrinsic::fma || call->getIntrinsicID() == Intrinsic::fabs ||
                             call->getIntrinsicID() == Intrinsic::sqrt));
  if (!is_simple || !all_of(members, [&](Value* member) {
        auto* other = dyn_cast<Instruction>(member);
        return other && other->getOpcode() == one->getOpcode() && other->getType() == one->getType() &&
               (!call ||
                (isa<IntrinsicInst>(other) && cast<IntrinsicInst>(other)->getIntrinsicID() == call->getIntrinsicID()));
      }))
    return false;
  for (unsigned i = 0; i < (call ? call->arg_size() : one->getNumOperands()); ++i)
    if (!can_stay_interleaved(operands_of(members, i), nodes)) return false;
  return true;
}

Values InterleavedAccesses::compute_interleaved(ArrayRef<Value*> members, IRBuilder<>& builder) {
  unsigned width = lanes_.register_lanes(members[0]->getType());
  uint64_t count = members.size() * kLanes / width;
  if (!lanes_.is_divergent(members[0]))
    return Values(count, builder.CreateVectorSplat(width, lanes_.scalar(members[0])));
  auto* one = cast<Instruction>(members[0]);
  if (isa<LoadInst>(one)) return registers_[group_of_[one]];
  auto* call = dyn_cast<IntrinsicInst>(one);
  SmallVector<Values> operands;
  for (unsigned i = 0; i < (call ? call->arg_size() : one->getNumOperands()); ++i)
    operands.push_back(compute_interleaved(operands_of(members, i), builder));
  Values results;
  for (unsigned i = 0; i < count; ++i) {
    Values arguments;
    for (const Values& operand : operands) arguments.push_back(operand[i]);
    Value* result;
    if (call)
      result = builder.CreateIntrinsic(call->getIntrinsicID(), {arguments[0]->getType()}, arguments);
    else if (auto* binary = dyn_cast<BinaryOperator>(one))
      result = builder.CreateBinOp(binary->getOpcode(), arguments[0], arguments[1]);
    else
      result = builder.CreateFNeg(arguments[0]);
    if (auto* made = dyn_cast<Instruction>(result)) {
      made->copyIRFlags(one);
      for (Value* member : members) made->andIRFlags(member);
    }
    results.push_back(result);
  }
  return results;
}

}  // namespace kiln::widening
