#include "compiler/vectorize/widener_interleaved.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/metadata.h"
#include "compiler/ir/remarks.h"
#include "compiler/vectorize/widener_guards.h"

namespace kiln::widening {

static Values operands_of(ArrayRef<Value*> members, unsigned i) {
  Values operands;
  for (Value* member : members) operands.push_back(cast<Instruction>(member)->getOperand(i));
  return operands;
}

// A block of iterations has as much as the largest register.
static constexpr uint64_t kRowBlockBytes = 64;

static bool is_of_tile(const Instruction& access) {
  return isa<AllocaInst>(getUnderlyingObject(getLoadStorePointerOperand(&access)));
}

static bool is_of_row_block(const Instruction& access) { return access.hasMetadata(kRowBlock) && !is_of_tile(access); }

// The lanes' addresses, so many elements from one to the next.
static Values addresses_of_rows(Value* first, Type* element, uint64_t step, IRBuilder<>& builder) {
  Values rows;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    rows.push_back(builder.CreateConstGEP1_64(element, first, lane * step));
  return rows;
}

// Whether members that fill a word are shifted and combined as words: they are truncated from words, or uniform. It
// takes fewer instructions than narrowing each of them and putting their bytes in order. (Loads gain nothing by it.)
bool InterleavedAccesses::fill_words(ArrayRef<Value*> members, Type* element, uint64_t bytes) const {
  return element->isIntegerTy() && bytes < sizeof(uint32_t) && bytes * members.size() == sizeof(uint32_t) &&
         all_of(
             members,
             [&](Value* member) {
               auto* truncated = dyn_cast_or_null<TruncInst>(member);
               return (truncated && truncated->getSrcTy()->isIntegerTy(32)) || (member && !lanes_.is_divergent(member));
             });
}

// The number of elements from one lane's to the next one's; 0 if they cannot be interleaved.
uint64_t InterleavedAccesses::step_of(Value* pointer, uint64_t bytes) {
  const uint64_t step = strides_.element_stride(pointer, bytes);
  return step == 0 ? strides_.row_stride(pointer, bytes) : step == 1 ? 0 : step;
}

// The offset of an access from the first of a group where both guards allow the same lanes: they are the same guard, or
// they compare with the same limit, and their offsets differ by as much as the addresses.
std::optional<int64_t> InterleavedAccesses::offset_of(const GuardedAddress& first, const GuardedAddress& access,
                                                      uint64_t bytes) const {
  std::optional<int64_t> offset = distance(first.address, access.address, bytes, evolution_);
  if (!offset || access.allowed == first.allowed) return offset;
  std::optional<LaneGuard> guard = lane_guard_of(access.allowed, flow_),
                           first_guard = lane_guard_of(first.allowed, flow_);
  if (!guard || !first_guard || guard->limit != first_guard->limit ||
      distance(first_guard->offset, guard->offset, bytes, evolution_) != offset)
    return std::nullopt;
  return offset;
}

// The same where a narrow index might wrap between the accesses. A check of the group shows that none does: of offsets
// whose extension ends where AddressChecks expects it, or of the last lane's highest address.
std::optional<int64_t> InterleavedAccesses::offset_unless_wrapped(const GuardedAddress& first,
                                                                  const GuardedAddress& access, uint64_t bytes,
                                                                  bool are_in_record) const {
  std::optional<UnwrappedDistance> distance = distance_unless_wrapped(first.address, access.address, bytes, evolution_);
  if (!distance) return std::nullopt;
  const bool is_guarded = access.allowed && lanes_.is_divergent(access.allowed);
  if (!is_guarded) {
    // What is on one side of a piece in the lowest member need not be in another one.
    if (strides_.has_piece(access.address) || strides_.has_piece(first.address)) return std::nullopt;
    return access.allowed == first.allowed ? std::optional(distance->elements) : std::nullopt;
  }
  std::optional<LaneGuard> guard = lane_guard_of(access.allowed, flow_),
                           first_guard = lane_guard_of(first.allowed, flow_);
  if (!guard || !first_guard || guard->limit != first_guard->limit) return std::nullopt;
  std::optional<UnwrappedDistance> of_guards =
      distance_unless_wrapped(first_guard->offset, guard->offset, bytes, evolution_);
  if (!of_guards || of_guards->elements != distance->elements) return std::nullopt;
  // The same numbers are extended for an address and for its offset, and they are those that a check compares.
  auto base_of = [&](Value* address, Value* guarded_offset) {
    return evolution_.getMinusSCEV(evolution_.getSCEV(address), evolution_.getSCEV(guarded_offset));
  };
  auto end_of = [&](Value* offset) {
    return are_in_record ? Wrapping::end_in_a_lane(offset) : wrapping_.end_of_extension(offset);
  };
  if (base_of(access.address, guard->offset) != base_of(first.address, first_guard->offset) ||
      end_of(guard->offset) != of_guards->end || end_of(first_guard->offset) != of_guards->end)
    return std::nullopt;
  return distance->elements;
}

bool InterleavedAccesses::is_interleaved_with(const AccessGroup& group, Instruction& access, Member& member) {
  Instruction& first = *group[0].access;
  Type* type = getLoadStoreType(&access);
  if (type != getLoadStoreType(&first)) return false;
  const uint64_t bytes = layout_.getTypeStoreSize(type);
  const GuardedAddress one = guarded_address_of(access), other = guarded_address_of(first);
  if ((one.allowed == nullptr) != (other.allowed == nullptr)) return false;
  const bool are_of_block = is_of_row_block(first);
  if (is_of_row_block(access) != are_of_block) return false;
  uint64_t step = are_of_block ? kRowBlockBytes / bytes : step_of(other.address, bytes);
  if (!are_of_block && step_of(one.address, bytes) != step) return false;
  const bool are_in_record = step == 0;
  if (are_in_record) {
    if (isa<StoreInst>(access) || !is_in_record(other.address, type) || !is_in_record(one.address, type)) return false;
    step = kRecordBytes / bytes;
  }
  const bool walk_rows = !are_of_block && !are_in_record && strides_.element_stride(other.address, bytes) == 0;
  if (walk_rows && (isa<StoreInst>(access) || type->isIntegerTy(1))) return false;
  std::optional<int64_t> offset = offset_of(other, one, bytes);
  const bool may_wrap = !offset;
  if (may_wrap) offset = offset_unless_wrapped(other, one, bytes, are_in_record);
  if (!offset) return false;
  // Nothing but the lanes' check tells whether an index wraps, or whether guards of their own allow all members.
  if (are_in_record && (may_wrap || one.allowed != other.allowed) && !(one.allowed && lanes_.is_divergent(one.allowed)))
    return false;
  // A vote has shown that none wraps within one access of the loop.
  if (are_of_block && may_wrap && access.getMetadata(kRowBlock) != first.getMetadata(kRowBlock)) return false;
  // The check is of the lowest member's index, which must be that of the others. That of a record is of one lane, and
  // holds for members that do not wrap, too.
  if (!are_in_record && any_of(drop_begin(group), [&](const Member& member) { return member.may_wrap != may_wrap; }))
    return false;
  int64_t lowest = *offset, highest = *offset;
  for (const Member& other : group) {
    lowest = std::min(lowest, other.offset);
    highest = std::max(highest, other.offset);
  }
  if (walk_rows) step = std::min(step, kRowPartBytes / bytes);
  if (highest - lowest >= static_cast<int64_t>(step)) return false;
  member = {&access, *offset, may_wrap};
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

// Whole parts of rows.
bool InterleavedAccesses::is_worth_storing(const AccessGroup& group) {
  const Instruction& store = *group[0].access;
  if (!is_of_row_block(store)) return true;
  const uint64_t bytes = layout_.getTypeStoreSize(store.getOperand(0)->getType());
  const int64_t lowest = lowest_member(group).offset;
  return group.size() * bytes % kRowPartBytes == 0 && all_of(group, [&](const Member& member) {
           return member.offset - lowest < static_cast<int64_t>(group.size());
         });
}

// Stores are deferred to the last of their group: nothing in between accesses memory (vectorize/cluster_stores.h).
void InterleavedAccesses::find_store_groups(BasicBlock& block) {
  AccessGroup group;
  auto close = [&] {
    if (group.size() > 1 && is_worth_storing(group)) {
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

void InterleavedAccesses::check_members(const AccessGroup& group, AccessShape& shape) const {
  if (!may_wrap(group)) return;
  // If the lowest members are out of bounds, others that have wrapped may be inside.
  shape.slow_path_checks = true;
  const Member& lowest = lowest_member(group);
  for (const Member& member : group)
    if (&member != &lowest)
      shape.others.emplace_back(guarded_address_of(*member.access).address,
                                static_cast<uint64_t>(member.offset - lowest.offset) * shape.bytes);
}

// The elements from the lowest member to the highest, where one guard allows all of them, as that of a vector does. A
// lane whose offset passes has all in the array, so that a check need not look beyond them.
uint64_t InterleavedAccesses::covered_by_guard(const AccessGroup& group) const {
  const Member& lowest = lowest_member(group);
  Value* allowed = guarded_address_of(*lowest.access).allowed;
  if (!allowed || !lanes_.is_divergent(allowed) || may_wrap(group)) return 0;
  int64_t highest = lowest.offset;
  for (const Member& member : group) {
    if (guarded_address_of(*member.access).allowed != allowed) return 0;
    highest = std::max(highest, member.offset);
  }
  return static_cast<uint64_t>(highest - lowest.offset);
}

void InterleavedAccesses::load_group(const AccessGroup& group, IRBuilder<>& builder) {
  int64_t lowest = lowest_member(group).offset;
  auto& load = cast<LoadInst>(*lowest_member(group).access);
  auto [allowed, pointer] = guarded_address_of(load);
  if (is_of_row_block(load)) return load_block(group, builder);
  uint64_t bytes = layout_.getTypeStoreSize(load.getType()), step = strides_.element_stride(pointer, bytes);
  if (step == 0) return strides_.row_stride(pointer, bytes) ? load_rows(group, builder) : load_records(group, builder);
  SmallVector<uint64_t> indices;
  Values by_index(step);
  for (const Member& member : group) {
    indices.push_back(static_cast<uint64_t>(member.offset - lowest));
    by_index[indices.back()] = member.access;
  }
  const bool is_complete = !is_contained(by_index, nullptr);
  // Without a bounds check the array may end with the last lane's last member. What the check covers is in the array.
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
    Values results = load_members_alone(group, builder);
    if (!keeps_registers) return results;
    Values members;
    for (Value* member : by_index) members.push_back(lanes_.known_vector(member));
    append_range(results, strided_.interleaved(members, builder));
    return results;
  };
  const uint64_t reach = (num_elements - 1 - covered_by_guard(group)) * bytes;
  AccessShape shape{bytes, reach, is_complete || !is_checked, true};
  check_members(group, shape);
  Values results = checks_.emit_by_shape(pointer, allowed, shape, builder, vectorized, scalarized);
  for (auto [member, result] : zip(group, results)) lanes_.set_vector(member.access, result);
  if (keeps_registers) registers_[group[0].access] = Values(drop_begin(results, group.size()));
}

// Each member by itself.
Values InterleavedAccesses::load_members_alone(const AccessGroup& group, IRBuilder<>& builder) {
  Values results;
  for (const Member& member : group) {
    auto* load = cast<LoadInst>(member.access);
    lane_accesses_.load(*load, builder);
    results.push_back(lanes_.known_vector(load));
  }
  return results;
}

void InterleavedAccesses::load_rows(const AccessGroup& group, IRBuilder<>& builder) {
  const int64_t lowest = lowest_member(group).offset;
  auto& load = cast<LoadInst>(*lowest_member(group).access);
  auto [allowed, pointer] = guarded_address_of(load);
  const uint64_t bytes = layout_.getTypeStoreSize(load.getType()), step = strides_.row_stride(pointer, bytes);
  remark("widen", load, "parts of rows: the loads of neighbouring threads are ", step * bytes, " bytes apart");
  SmallVector<uint64_t> indices;
  for (const Member& member : group) indices.push_back(static_cast<uint64_t>(member.offset - lowest));
  // Whole words, and a power of two of them. What the check covers is in the array.
  const uint64_t last = *llvm::max_element(indices);
  const uint64_t part = std::max(PowerOf2Ceil(last + 1), sizeof(uint32_t) / bytes);
  const bool is_checked = allowed && lanes_.is_divergent(allowed);
  auto vectorized = [&](Value* address) {
    return strided_.load_rows(load, addresses_of_rows(address, load.getType(), step, builder), part, indices, builder);
  };
  auto scalarized = [&] { return load_members_alone(group, builder); };
  const uint64_t reach = (step * (kLanes - 1) + part - 1 - covered_by_guard(group)) * bytes;
  AccessShape shape{bytes, reach, true, true};
  check_members(group, shape);
  Values results = is_checked || part == last + 1
                       ? checks_.emit_by_shape(pointer, allowed, shape, builder, vectorized, scalarized)
                       : scalarized();
  for (auto [member, result] : zip(group, results)) lanes_.set_vector(member.access, result);
}

// The lanes' addresses, without checks: a vote was the check.
Values InterleavedAccesses::rows_of(Instruction& access, IRBuilder<>& builder) {
  auto [allowed, pointer] = guarded_address_of(access);
  Values rows;
  if (const std::optional<int64_t> stride = strides_.stride_of(pointer);
      stride && !strides_.has_piece(pointer) && wrapping_.never_wraps(pointer)) {
    rows = addresses_of_rows(lane_scalars_.at_lane(pointer, 0, builder), builder.getInt8Ty(),
                             static_cast<uint64_t>(*stride), builder);
  } else {
    // Where a row begins is known before the loop, as a rule, and the lanes' elements are extracted there.
    auto* place = dyn_cast<GetElementPtrInst>(pointer);
    if (place && any_of(place->indices(), [&](const Use& index) { return lanes_.is_divergent(index.get()); }))
      place = nullptr;
    Value* all = lanes_.vector(place ? place->getPointerOperand() : pointer, builder);
    Values indices;
    if (place)
      for (Value* index : place->indices()) indices.push_back(lanes_.scalar(index));
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      Value* row = builder.CreateExtractElement(all, lane);
      rows.push_back(place ? builder.CreateGEP(place->getSourceElementType(), row, indices) : row);
    }
  }
  if (is_all(lanes_.mask())) return rows;
  // Inactive lanes' rows are nowhere. One by one, so that nothing of it is left where all lanes turn out to be active.
  Module& module = *access.getModule();
  Value* elsewhere = isa<StoreInst>(access) ? static_cast<Value*>(&make_sink(module, kRowBlockBytes))
                                            : zeros_of(module, kRowBlockBytes);
  Value* active = lanes_.mask_bits(builder);
  for (auto [lane, row] : enumerate(rows)) {
    Value* is_active = builder.CreateIsNotNull(builder.CreateAnd(active, uint64_t{1} << lane));
    row = builder.CreateSelect(is_active, row, elsewhere);
  }
  return rows;
}

void InterleavedAccesses::load_block(const AccessGroup& group, IRBuilder<>& builder) {
  const int64_t lowest = lowest_member(group).offset;
  auto& load = cast<LoadInst>(*lowest_member(group).access);
  const uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  SmallVector<uint64_t> indices;
  for (const Member& member : group) indices.push_back(static_cast<uint64_t>(member.offset - lowest));
  // Nothing beyond the last element is known to be there.
  const uint64_t part = *llvm::max_element(indices) + 1;
  if (part * bytes % kRowPartBytes != 0) {
    for (auto [member, result] : zip(group, load_members_alone(group, builder)))
      lanes_.set_vector(member.access, result);
    return;
  }
  remark("widen", load, "parts of rows: ", part * bytes, " bytes of each thread's");
  const Values results = strided_.load_rows(load, rows_of(load, builder), part, indices, builder);
  for (auto [member, result] : zip(group, results)) lanes_.set_vector(member.access, result);
}

void InterleavedAccesses::store_block(const AccessGroup& group, IRBuilder<>& builder) {
  const int64_t lowest = lowest_member(group).offset;
  auto& store = cast<StoreInst>(*lowest_member(group).access);
  remark("widen", store, "parts of rows: ", group.size() * layout_.getTypeStoreSize(store.getValueOperand()->getType()),
         " bytes of each thread's");
  Values members(group.size());
  for (const Member& member : group)
    members[static_cast<uint64_t>(member.offset - lowest)] =
        lanes_.vector(cast<StoreInst>(member.access)->getValueOperand(), builder);
  strided_.store_rows(members, rows_of(store, builder), store.getAlign(), builder);
}

void InterleavedAccesses::store_group(const AccessGroup& group, IRBuilder<>& builder) {
  int64_t lowest = lowest_member(group).offset;
  auto& store = cast<StoreInst>(*lowest_member(group).access);
  auto [allowed, pointer] = guarded_address_of(store);
  Type* element = store.getValueOperand()->getType();
  if (is_of_row_block(store)) return store_block(group, builder);
  uint64_t bytes = layout_.getTypeStoreSize(element), step = strides_.element_stride(pointer, bytes);
  Values values(step);
  for (const Member& member : group)
    values[static_cast<uint64_t>(member.offset - lowest)] = cast<StoreInst>(member.access)->getValueOperand();
  uint64_t last = step - 1;
  while (!values[last]) --last;
  bool is_complete = !is_contained(values, nullptr);
  const bool as_words = fill_words(values, element, bytes);
  auto vectorized = [&](Value* address) -> Values {
    if (as_words) {
      store_words(values, address, store.getAlign(), builder);
      return {};
    }
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
  AccessShape shape{bytes, (step * (kLanes - 1) + last - covered_by_guard(group)) * bytes, true};
  check_members(group, shape);
  // What lies between members is masked.
  if (!is_complete && !lanes_.can_mask(bytes))
    scalarized();
  else
    checks_.emit_by_shape(pointer, allowed, shape, builder, vectorized, scalarized);
}

// Of each lane the members as one word. InstCombine drops the truncation of a member that fits.
void InterleavedAccesses::store_words(ArrayRef<Value*> members, Value* address, Align alignment, IRBuilder<>& builder) {
  Type* words = vector_of(builder.getInt32Ty());
  Value* all = nullptr;
  for (auto [index, member] : enumerate(members)) {
    Value* word = builder.CreateZExt(lanes_.vector(member, builder), words);
    word = builder.CreateShl(word, index * member->getType()->getIntegerBitWidth());
    all = all ? builder.CreateOr(all, word) : word;
  }
  const unsigned width = lanes_.register_lanes(builder.getInt32Ty());
  // As for bytes: where these cannot be masked all lanes are active.
  const bool is_masked = !is_all(lanes_.mask()) && lanes_.can_mask(sizeof(uint32_t) / members.size());
  for (unsigned first = 0; first < kLanes; first += width) {
    Value* part = builder.CreateShuffleVector(all, createSequentialMask(first, width, 0));
    Value* to = builder.CreateConstGEP1_32(builder.getInt32Ty(), address, first);
    if (is_masked)
      builder.CreateMaskedStore(part, to, alignment, lanes_.lanes_of_mask(first, width, builder));
    else
      builder.CreateAlignedStore(part, to, alignment);
  }
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
    int64_t lowest = lowest_member(group).offset;
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
