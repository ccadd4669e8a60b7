// Loads of rows that are a known number of elements apart, as `x[i]`, `x[i + 256]` and `x[i + 512]`: it is asked once
// whether all of them are there. If not, what is there of them is copied to memory of the function's own, at the same
// distances, so that what follows is the same code: loads of which each can be an operand of what uses it.
//
// Rejected: choosing between the rows' registers. They would all be live where the ways meet.
#include <algorithm>

#include "compiler/ir/loop_metadata.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/vectorize/widener.h"

namespace kiln::widening {

namespace {

// From the first element of all to the last one, and of a block's groups: memory on the stack.
constexpr uint64_t kMostBytes = 16 << 10, kMostInABlock = 64 << 10;

// Of a guard that compares a lane's offset with what is the same in all lanes.
struct Guard {
  Value *offset, *limit;
};

std::optional<Guard> guard_of(Value* allowed) {
  auto* comparison = dyn_cast_or_null<ICmpInst>(allowed);
  if (!comparison || comparison->getPredicate() != ICmpInst::ICMP_ULT) return std::nullopt;
  return Guard{comparison->getOperand(0), comparison->getOperand(1)};
}

}  // namespace

bool Widener::joins_rows(const Group& group, LoadInst& load, ScalarEvolution& evolution, Member& member) {
  auto& first = cast<LoadInst>(*group[0].access);
  if (load.getType() != first.getType() || load.getAlign() != first.getAlign()) return false;
  auto [allowed, address] = place_of(load);
  auto [first_allowed, first_address] = place_of(first);
  std::optional<Guard> guard = guard_of(allowed), first_guard = guard_of(first_allowed);
  if (guard->limit != first_guard->limit) return false;
  uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  std::optional<int64_t> place = distance(first_address, address, bytes, evolution);
  if (!place || distance(first_guard->offset, guard->offset, bytes, evolution) != place) return false;
  int64_t lowest = *place, highest = *place;
  for (const Member& other : group) {
    // Their copies would overlap.
    if (std::abs(other.place - *place) < static_cast<int64_t>(kLanes)) return false;
    lowest = std::min(lowest, other.place);
    highest = std::max(highest, other.place);
  }
  if (static_cast<uint64_t>(highest - lowest + kLanes) * bytes > kMostBytes) return false;
  member = {&load, *place};
  return true;
}

void Widener::find_rows(BasicBlock& block, ScalarEvolution& evolution) {
  auto is_used = [&](LoadInst& load) {
    if (load.getType()->isIntegerTy(1) || tiles_.contains(&load) || group_of_.contains(&load)) return false;
    auto [allowed, address] = place_of(load);
    std::optional<Guard> guard = guard_of(allowed);
    return guard && is_divergent(allowed) && !is_divergent(guard->limit) && grow_in_step(guard->offset, address) &&
           step_of(address, layout_.getTypeStoreSize(load.getType())) == 1 && !reaches_back(address);
  };
  auto joins = [&](const Group& group, LoadInst& load, Member& member) {
    return joins_rows(group, load, evolution, member);
  };
  uint64_t most_bytes = 0;
  group_loads(block, is_used, joins, [&](const Group& group) {
    if ((most_bytes += kMostBytes) > kMostInABlock) return;
    for (const Member& member : group) rows_of_[member.access] = static_cast<unsigned>(rows_.size());
    rows_.push_back({group});
  });
}

AllocaInst* Widener::take_room(uint64_t bytes) {
  auto found = find_if(free_rooms_, [&](const auto& room) { return room.second >= bytes; });
  if (found == free_rooms_.end()) {
    AllocaInst* room = scratch(ArrayType::get(Type::getInt8Ty(context_), bytes));
    room->setAlignment(Align(64));
    return room;
  }
  AllocaInst* room = found->first;
  free_rooms_.erase(found);
  return room;
}

// At the first member.
void Widener::begin_rows(Rows& rows, IRBuilder<>& builder) {
  int64_t lowest = lowest_offset(rows.members), highest = lowest;
  for (const Member& member : rows.members) highest = std::max(highest, member.place);
  auto& load =
      cast<LoadInst>(*find_if(rows.members, [&](const Member& member) { return member.place == lowest; })->access);
  auto [allowed, pointer] = place_of(load);
  Guard guard = *guard_of(allowed);
  uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  uint64_t reach = (static_cast<uint64_t>(highest - lowest) + kLanes - 1) * bytes;
  rows.room_bytes = reach + bytes;
  rows.room = take_room(rows.room_bytes);

  Value* first = at_lane(pointer, 0, builder);
  Value* least = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, scalar(guard.limit), builder.getInt64(reach));
  Value* is_there = builder.CreateICmpULT(at_lane(guard.offset, 0, builder), least);
  is_there = builder.CreateAnd(is_row(guard.offset, builder), is_there);
  // Without masks in memory all lanes must take part.
  if (!is_word(bytes) && !has_avx512_)
    is_there = builder.CreateAnd(
        is_there, builder.CreateICmpEQ(builder.CreateBitCast(mask_, builder.getInt32Ty()), builder.getInt32(-1)));
  auto in_memory = [&]() -> Values { return {first}; };
  auto copied = [&]() -> Values {
    copy_rows(rows, load, first, builder);
    return {rows.room};
  };
  rows.first = either({is_there, "rows", "copied"}, builder, in_memory, copied)[0];
}

// A loop over the rows, `lowest` first among them: one that is there as a whole is copied, of others lane after lane.
void Widener::copy_rows(const Rows& rows, LoadInst& lowest, Value* first, IRBuilder<>& builder) {
  auto [allowed, pointer] = place_of(lowest);
  Guard guard = *guard_of(allowed);
  Type *element = lowest.getType(), *number = builder.getInt64Ty();
  uint64_t bytes = layout_.getTypeStoreSize(element);
  SmallVector<uint64_t> distances;
  for (const Member& member : rows.members)
    distances.push_back(static_cast<uint64_t>(member.place - lowest_offset(rows.members)) * bytes);
  Constant* list = ConstantDataArray::get(context_, distances);
  auto* table = new GlobalVariable(*to_.getParent(), list->getType(), true, GlobalValue::InternalLinkage, list,
                                   "__kiln_distances");
  LanePositions places;
  for (Value* value : {pointer, guard.offset}) store_leaves(value, places, builder);
  Value* first_offset = at_lane(guard.offset, 0, builder);
  Value* is_in_order = is_row(guard.offset, builder);
  Value* reach = builder.getInt64((kLanes - 1) * bytes);
  Value* least = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, scalar(guard.limit), reach);
  Value* bits = builder.CreateBitCast(mask_, builder.getInt32Ty());

  auto block = [&](const char* name) {
    BasicBlock* made = BasicBlock::Create(context_, name, &to_);
    made->moveAfter(builder.GetInsertBlock());
    return made;
  };
  BasicBlock *before = builder.GetInsertBlock(), *end = block("copied.end"), *next = block("row.next");
  BasicBlock *lane_block = block("lane"), *lanes = block("lanes"), *whole = block("row"), *row = block("copy");
  builder.CreateBr(row);
  builder.SetInsertPoint(row);
  PHINode* index = builder.CreatePHI(builder.getInt32Ty(), 2);
  index->addIncoming(builder.getInt32(0), before);
  Value* distance = builder.CreateLoad(number, builder.CreateGEP(number, table, index));
  Value* to = builder.CreateGEP(builder.getInt8Ty(), rows.room, distance);
  Value* is_whole = builder.CreateICmpULT(builder.CreateAdd(first_offset, distance), least);
  builder.CreateCondBr(builder.CreateAnd(is_in_order, is_whole), whole, lanes);
  // Lanes that take no part may be copied too: they are there.
  builder.SetInsertPoint(whole);
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
  Value* offset = builder.CreateAdd(at_lane_of_loop(guard.offset, lane, places, builder), distance);
  Value* address = builder.CreateGEP(builder.getInt8Ty(), at_lane_of_loop(pointer, lane, places, builder), distance);
  Value* own = builder.CreateGEP(element, to, builder.CreateZExt(lane, number));
  // Where the guard stops it, the zero that is there.
  address = builder.CreateSelect(builder.CreateICmpULT(offset, scalar(guard.limit)), address, own);
  builder.CreateAlignedStore(builder.CreateAlignedLoad(element, address, lowest.getAlign()), own, lowest.getAlign());
  Value* less = builder.CreateAnd(rest, builder.CreateSub(rest, builder.getInt32(1)));
  rest->addIncoming(less, lane_block);
  never_unroll(*builder.CreateCondBr(builder.CreateICmpNE(less, builder.getInt32(0)), lane_block, next));

  builder.SetInsertPoint(next);
  Value* following = builder.CreateAdd(index, builder.getInt32(1));
  index->addIncoming(following, next);
  Value* has_more = builder.CreateICmpULT(following, builder.getInt32(static_cast<uint32_t>(distances.size())));
  never_unroll(*builder.CreateCondBr(has_more, row, end));
  builder.SetInsertPoint(end);
}

void Widener::load_one_of_rows(LoadInst& load, Rows& rows, IRBuilder<>& builder) {
  if (!rows.first) begin_rows(rows, builder);
  const Member& member =
      *find_if(rows.members, [&](const Member& one) { return one.access == static_cast<Instruction*>(&load); });
  Value* address = builder.CreateConstGEP1_64(load.getType(), rows.first,
                                              static_cast<uint64_t>(member.place - lowest_offset(rows.members)));
  vectors_[&load] = load_row(load, address, builder);
  if (++rows.made == rows.members.size()) free_rooms_.push_back({rows.room, rows.room_bytes});
}

}  // namespace kiln::widening
