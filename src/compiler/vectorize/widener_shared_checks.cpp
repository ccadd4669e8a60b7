#include "compiler/vectorize/widener_shared_checks.h"

#include <algorithm>

#include "compiler/ir/loop_metadata.h"
#include "compiler/vectorize/widener_guards.h"

namespace kiln::widening {

namespace {

// Stack memory: from the first element of a group to its last, and for all groups of a block.
constexpr uint64_t kMaxBytes = 16 << 10, kMaxBytesInBlock = 64 << 10;

}  // namespace

bool SharedChecks::can_share_check(const AccessGroup& group, LoadInst& load, Member& member) {
  auto& first = cast<LoadInst>(*group[0].access);
  if (load.getType() != first.getType() || load.getAlign() != first.getAlign()) return false;
  auto [allowed, address] = guarded_address_of(load);
  auto [first_allowed, first_address] = guarded_address_of(first);
  std::optional<LaneGuard> guard = lane_guard_of(allowed, flow_), first_guard = lane_guard_of(first_allowed, flow_);
  if (guard->limit != first_guard->limit) return false;
  uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  std::optional<int64_t> offset = distance(first_address, address, bytes, evolution_);
  if (!offset || distance(first_guard->offset, guard->offset, bytes, evolution_) != offset) return false;
  int64_t lowest = *offset, highest = *offset;
  for (const Member& other : group) {
    // Their copies would overlap.
    if (std::abs(other.offset - *offset) < static_cast<int64_t>(kLanes)) return false;
    lowest = std::min(lowest, other.offset);
    highest = std::max(highest, other.offset);
  }
  if (static_cast<uint64_t>(highest - lowest + kLanes) * bytes > kMaxBytes) return false;
  member = {&load, *offset};
  return true;
}

void SharedChecks::find(BasicBlock& block, function_ref<bool(LoadInst&)> is_taken) {
  auto is_candidate = [&](LoadInst& load) {
    if (!lanes_.is_divergent(load.getPointerOperand()) || load.getType()->isIntegerTy(1) || is_taken(load))
      return false;
    auto [allowed, address] = guarded_address_of(load);
    std::optional<LaneGuard> guard = lane_guard_of(allowed, flow_);
    return guard && lanes_.is_divergent(allowed) && patterns_.have_equal_strides(guard->offset, address) &&
           strides_.element_stride(address, layout_.getTypeStoreSize(load.getType())) == 1 &&
           !strides_.has_negative_offset(address);
  };
  auto can_join = [&](const AccessGroup& group, LoadInst& load, Member& member) {
    return can_share_check(group, load, member);
  };
  uint64_t total_bytes = 0;
  group_loads(block, is_candidate, can_join, [&](const AccessGroup& group) {
    if ((total_bytes += kMaxBytes) > kMaxBytesInBlock) return;
    for (const Member& member : group) check_of_[member.access] = static_cast<unsigned>(shared_checks_.size());
    shared_checks_.push_back({group});
  });
}

AllocaInst* SharedChecks::acquire_buffer(uint64_t bytes) {
  auto found = find_if(free_buffers_, [&](const auto& buffer) { return buffer.second >= bytes; });
  if (found == free_buffers_.end()) {
    AllocaInst* buffer = scratch_.acquire(ArrayType::get(Type::getInt8Ty(lanes_.context()), bytes));
    buffer->setAlignment(Align(64));
    return buffer;
  }
  AllocaInst* buffer = found->first;
  free_buffers_.erase(found);
  return buffer;
}

// Called at the first member.
void SharedChecks::emit_check(SharedCheck& shared, IRBuilder<>& builder) {
  int64_t lowest = lowest_member(shared.members).offset, highest = lowest;
  for (const Member& member : shared.members) highest = std::max(highest, member.offset);
  auto& load = cast<LoadInst>(*lowest_member(shared.members).access);
  auto [allowed, pointer] = guarded_address_of(load);
  LaneGuard guard = *lane_guard_of(allowed, flow_);
  uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  uint64_t reach = (static_cast<uint64_t>(highest - lowest) + kLanes - 1) * bytes;
  shared.buffer_bytes = reach + bytes;
  shared.buffer = acquire_buffer(shared.buffer_bytes);

  Value* first = lane_scalars_.at_lane(pointer, 0, builder);
  Value* in_bounds = checks_.check_bounds(guard.offset, guard.limit, /*lowest=*/0, reach, builder);
  auto in_memory = [&]() -> Values { return {first}; };
  auto copied = [&]() -> Values {
    copy_to_buffer(shared, load, first, builder);
    return {shared.buffer};
  };
  shared.base = lanes_.create_if_else({in_bounds, "rows", "copied"}, builder, in_memory, copied)[0];
}

// A loop over the loads, of which `lowest` has the lowest address: a load in bounds is copied as a whole, others lane
// by lane.
void SharedChecks::copy_to_buffer(const SharedCheck& shared, LoadInst& lowest, Value* first, IRBuilder<>& builder) {
  auto [allowed, pointer] = guarded_address_of(lowest);
  LaneGuard guard = *lane_guard_of(allowed, flow_);
  Type *element = lowest.getType(), *number = builder.getInt64Ty();
  uint64_t bytes = layout_.getTypeStoreSize(element);
  SmallVector<uint64_t> distances;
  for (const Member& member : shared.members)
    distances.push_back(static_cast<uint64_t>(member.offset - lowest_member(shared.members).offset) * bytes);
  Constant* list = ConstantDataArray::get(lanes_.context(), distances);
  auto* table = new GlobalVariable(*lanes_.function().getParent(), list->getType(), true, GlobalValue::InternalLinkage,
                                   list, "__kiln_distances");
  LaneLoops::Slots slots;
  for (Value* value : {pointer, guard.offset}) lane_loops_.store_leaves(value, slots, builder);
  Value* first_offset = lane_scalars_.at_lane(guard.offset, 0, builder);
  Value* is_in_order = checks_.check_stride(guard.offset, builder);
  Value* reach = builder.getInt64((kLanes - 1) * bytes);
  Value* reduced = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, lanes_.scalar(guard.limit), reach);
  Value* bits = lanes_.mask_bits(builder);

  auto block = [&](const char* name) { return lanes_.create_block(name, builder.GetInsertBlock()); };
  BasicBlock *before = builder.GetInsertBlock(), *end = block("copied.end"), *next = block("row.next");
  BasicBlock *lane_block = block("lane"), *lanes = block("lanes"), *whole_block = block("row"),
             *copy_block = block("copy");
  builder.CreateBr(copy_block);
  builder.SetInsertPoint(copy_block);
  PHINode* index = builder.CreatePHI(builder.getInt32Ty(), 2);
  index->addIncoming(builder.getInt32(0), before);
  Value* distance = builder.CreateLoad(number, builder.CreateGEP(number, table, index));
  Value* to = builder.CreateGEP(builder.getInt8Ty(), shared.buffer, distance);
  Value* is_whole = builder.CreateICmpULT(builder.CreateAdd(first_offset, distance), reduced);
  builder.CreateCondBr(builder.CreateAnd(is_in_order, is_whole), whole_block, lanes);
  // Inactive lanes may be copied too: they are in bounds.
  builder.SetInsertPoint(whole_block);
  Value* from = builder.CreateGEP(builder.getInt8Ty(), first, distance);
  builder.CreateAlignedStore(builder.CreateAlignedLoad(vector_of(element), from, lowest.getAlign()), to,
                             lowest.getAlign());
  builder.CreateBr(next);

  builder.SetInsertPoint(lanes);
  builder.CreateAlignedStore(Constant::getNullValue(vector_of(element)), to, lowest.getAlign());
  builder.CreateCondBr(builder.CreateICmpNE(bits, builder.getInt32(0)), lane_block, next);
  builder.SetInsertPoint(lane_block);
  PHINode* rest = builder.CreatePHI(builder.getInt32Ty(), 2, "rest");
  rest->addIncoming(bits, lanes);
  Value* lane = builder.CreateBinaryIntrinsic(Intrinsic::cttz, rest, builder.getTrue());
  Value* offset = builder.CreateAdd(lane_loops_.at_lane_of_loop(guard.offset, lane, slots, builder), distance);
  Value* address =
      builder.CreateGEP(builder.getInt8Ty(), lane_loops_.at_lane_of_loop(pointer, lane, slots, builder), distance);
  Value* own = builder.CreateGEP(element, to, builder.CreateZExt(lane, number));
  // If the guard fails, the zero stored above.
  address = builder.CreateSelect(builder.CreateICmpULT(offset, lanes_.scalar(guard.limit)), address, own);
  builder.CreateAlignedStore(builder.CreateAlignedLoad(element, address, lowest.getAlign()), own, lowest.getAlign());
  Value* remaining = builder.CreateAnd(rest, builder.CreateSub(rest, builder.getInt32(1)));
  rest->addIncoming(remaining, lane_block);
  never_unroll(*builder.CreateCondBr(builder.CreateICmpNE(remaining, builder.getInt32(0)), lane_block, next));

  builder.SetInsertPoint(next);
  Value* following = builder.CreateAdd(index, builder.getInt32(1));
  index->addIncoming(following, next);
  Value* has_more = builder.CreateICmpULT(following, builder.getInt32(static_cast<uint32_t>(distances.size())));
  never_unroll(*builder.CreateCondBr(has_more, copy_block, end));
  builder.SetInsertPoint(end);
}

bool SharedChecks::load(LoadInst& load, IRBuilder<>& builder) {
  auto found = check_of_.find(&load);
  if (found == check_of_.end()) return false;
  SharedCheck& shared = shared_checks_[found->second];
  if (!shared.base) emit_check(shared, builder);
  const Member& member =
      *find_if(shared.members, [&](const Member& one) { return one.access == static_cast<Instruction*>(&load); });
  Value* address = builder.CreateConstGEP1_64(
      load.getType(), shared.base, static_cast<uint64_t>(member.offset - lowest_member(shared.members).offset));
  lanes_.set_vector(&load, strided_.load_consecutive(load, address, builder));
  if (++shared.num_loaded == shared.members.size()) free_buffers_.push_back({shared.buffer, shared.buffer_bytes});
  return true;
}

}  // namespace kiln::widening
