#include "compiler/vectorize/widener_scalarized.h"

#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <bit>

#include "compiler/ir/loop_metadata.h"

namespace kiln::widening {

// More are gathered or scattered.
static constexpr unsigned kFewLanes = 4;

// Scalar operations for a lane's operand. Above it is taken from a vector.
static constexpr unsigned kMostScalars = 16;

// What holds an integer in memory, where lanes are addressed: LLVM packs vectors of i1, i6 or i24, without bytes
// between their elements. (LLVM makes i6 of a reversal of six bits, for example.)
static Type* in_memory(Type* type) {
  const auto* integer = dyn_cast<IntegerType>(type);
  return integer ? IntegerType::get(type->getContext(), std::bit_ceil(std::max(8u, integer->getBitWidth()))) : type;
}

static Value* to_memory(Value* value, IRBuilder<>& builder) {
  Type* type = value->getType();
  return type->isIntOrIntVectorTy() ? builder.CreateZExt(value, type->getWithNewType(in_memory(type->getScalarType())))
                                    : value;
}

static Value* from_memory(Value* value, Type* type, IRBuilder<>& builder) {
  return type->isIntOrIntVectorTy() ? builder.CreateTrunc(value, type) : value;
}

// Stores the vectors that a loop over lanes needs. Postponed values are computed in the loop, from the lane index if
// possible: that is shorter than vectors of addresses.
void LaneLoops::store_leaves(Value* value, Slots& slots, IRBuilder<>& builder) {
  if (!lanes_.is_divergent(value) || is_lane(value) || slots.contains(value)) return;
  if (lanes_.is_postponed(value)) {
    for (Value* operand : cast<Instruction>(value)->operands()) store_leaves(operand, slots, builder);
    return;
  }
  Value* lanes = lanes_.vector(value, builder);
  AllocaInst* slot = slots[value] = scratch_.acquire(vector_of(in_memory(value->getType())));
  builder.CreateStore(to_memory(lanes, builder), slot);
}

Value* LaneLoops::at_lane_of_loop(Value* value, Value* lane, const Slots& slots, IRBuilder<>& builder) {
  if (!lanes_.is_divergent(value)) return lanes_.scalar(value);
  if (is_lane(value)) return builder.CreateZExtOrTrunc(lane, value->getType());
  if (Value* slot = slots.lookup(value)) {
    Type* stored = in_memory(value->getType());
    return from_memory(builder.CreateLoad(stored, builder.CreateGEP(stored, slot, lane)), value->getType(), builder);
  }
  if (!lanes_.is_postponed(value)) return builder.CreateExtractElement(lanes_.vector(value, builder), lane);
  auto& instruction = cast<Instruction>(*value);
  SmallVector<Value*> operands;
  for (Value* operand : instruction.operands()) operands.push_back(at_lane_of_loop(operand, lane, slots, builder));
  return builder.Insert(with_operands(instruction, operands));
}

bool LaneLoops::access_few_lanes(Instruction& access, IRBuilder<>& builder) {
  const SmallVector<unsigned> lanes = lanes_of(lanes_.mask());
  if (lanes.empty() || lanes.size() > kFewLanes) return false;
  auto at = [&](Value* value, unsigned lane) {
    if (!lanes_.is_divergent(value)) return lanes_.scalar(value);
    unsigned most = kMostScalars;
    return lane_scalars_.is_cheap_at_lane(value, most)
               ? lane_scalars_.at_active_lane(value, builder.getInt32(lane), builder)
               : builder.CreateExtractElement(lanes_.vector(value, builder), lane);
  };
  Value* result = access.getType()->isVoidTy() ? nullptr : Constant::getNullValue(vector_of(access.getType()));
  for (unsigned lane : lanes) {
    SmallVector<Value*> operands;
    for (Value* operand : access.operands()) operands.push_back(at(operand, lane));
    Value* made = builder.Insert(with_operands(access, operands));
    if (result) result = builder.CreateInsertElement(result, made, uint64_t{lane});
  }
  if (result) lanes_.set_vector(&access, result);
  return true;
}

// Runs the instruction for one lane, as under `thread_index_in_simdgroup == 0`.
void LaneLoops::for_one_lane(unsigned lane, Instruction& instruction, IRBuilder<>& builder, bool may_be_exclusive) {
  SmallVector<Value*> operands;
  for (Value* operand : instruction.operands())
    operands.push_back(at_lane_of_loop(operand, builder.getInt32(lane), {}, builder));
  Value* made =
      atomic_memory_.insert_scalar(instruction, *with_operands(instruction, operands), may_be_exclusive, builder);
  auto in_vector = [&](Value* value) {
    return builder.CreateInsertElement(Constant::getNullValue(vector_of(value->getType())), value, uint64_t{lane});
  };
  if (instruction.getType()->isStructTy()) {
    for (User* user : instruction.users())
      lanes_.set_vector(user, in_vector(builder.CreateExtractValue(made, cast<ExtractValueInst>(user)->getIndices())));
  } else if (!instruction.getType()->isVoidTy()) {
    lanes_.set_vector(&instruction, in_vector(made));
  }
}

// Runs the instruction for each lane of the mask, in a loop, with its operands and results in memory.
void LaneLoops::for_each_lane(Instruction& instruction, IRBuilder<>& builder, bool may_be_exclusive) {
  Type* type = instruction.getType();
  auto* pair = dyn_cast<StructType>(type);  // cmpxchg
  if (pair) check_pair(instruction);
  if (auto lane = only_lane(lanes_.mask())) return for_one_lane(*lane, instruction, builder, may_be_exclusive);
  Slots slots;
  for (Value* operand : instruction.operands()) store_leaves(operand, slots, builder);
  Type* element = pair ? pair->getElementType(0) : type;
  Type* stored = in_memory(element);
  AllocaInst *results = nullptr, *flags = nullptr;
  if (!type->isVoidTy()) {
    results = scratch_.acquire(vector_of(stored));
    builder.CreateStore(Constant::getNullValue(vector_of(stored)), results);
  }
  if (pair) {
    flags = scratch_.acquire(vector_of(builder.getInt8Ty()));
    builder.CreateStore(Constant::getNullValue(vector_of(builder.getInt8Ty())), flags);
  }
  BasicBlock* first = lanes_.create_block("lane.first", builder.GetInsertBlock());
  BasicBlock* body = lanes_.create_block("lane", first);
  BasicBlock* after = lanes_.create_block("lanes.end", body);
  Value* bits = lanes_.mask_bits(builder);
  builder.CreateCondBr(builder.CreateICmpNE(bits, builder.getInt32(0)), first, after);
  auto first_of = [&](Value* lanes) {
    return builder.CreateBinaryIntrinsic(Intrinsic::cttz, lanes, builder.getTrue());
  };
  auto operands_of = [&](Value* lane) {
    SmallVector<Value*> operands;
    for (Value* operand : instruction.operands()) operands.push_back(at_lane_of_loop(operand, lane, slots, builder));
    return operands;
  };

  builder.SetInsertPoint(first);
  // A processor starts no load before an atomic operation completes, so the next lane's operands are loaded before it.
  // A histogram on two of an Emerald Rapids' processors takes 0.94 of the time.
  const bool loads_ahead = isa<AtomicRMWInst>(instruction) && instruction.use_empty();
  SmallVector<Value*> first_operands;
  if (loads_ahead) first_operands = operands_of(first_of(bits));
  builder.CreateBr(body);

  builder.SetInsertPoint(body);
  PHINode* rest = builder.CreatePHI(builder.getInt32Ty(), 2, "rest");
  rest->addIncoming(bits, first);
  SmallVector<Value*> operands;
  for (Value* value : first_operands) operands.push_back(builder.CreatePHI(value->getType(), 2));
  Value* remaining = builder.CreateAnd(rest, builder.CreateSub(rest, builder.getInt32(1)));
  Value* lane = first_of(rest);
  SmallVector<Value*> next_operands;
  if (loads_ahead) {
    // If no lane is left, the current one's once more.
    Value* is_last = builder.CreateICmpEQ(remaining, builder.getInt32(0));
    next_operands = operands_of(first_of(builder.CreateSelect(is_last, rest, remaining)));
  } else {
    operands = operands_of(lane);
  }
  Value* made =
      atomic_memory_.insert_scalar(instruction, *with_operands(instruction, operands), may_be_exclusive, builder);
  if (results) {
    Value* value = pair ? builder.CreateExtractValue(made, 0) : made;
    builder.CreateStore(to_memory(value, builder), builder.CreateGEP(stored, results, lane));
  }
  if (flags)
    builder.CreateStore(to_memory(builder.CreateExtractValue(made, 1), builder),
                        builder.CreateGEP(builder.getInt8Ty(), flags, lane));
  rest->addIncoming(remaining, builder.GetInsertBlock());
  for (auto [operand, value, next] : zip(operands, first_operands, next_operands)) {
    cast<PHINode>(operand)->addIncoming(value, first);
    cast<PHINode>(operand)->addIncoming(next, builder.GetInsertBlock());
  }
  // With a constant mask LLVM would unroll to 32 copies.
  never_unroll(*builder.CreateCondBr(builder.CreateICmpNE(remaining, builder.getInt32(0)), body, after));

  builder.SetInsertPoint(after);
  auto read = [&](AllocaInst* slot, Type* of) {
    return from_memory(builder.CreateLoad(slot->getAllocatedType(), slot), vector_of(of), builder);
  };
  if (pair) {
    for (User* user : instruction.users()) {
      auto* part = cast<ExtractValueInst>(user);
      lanes_.set_vector(part, part->getIndices()[0] == 0 ? read(results, element) : read(flags, builder.getInt1Ty()));
    }
  } else if (results) {
    lanes_.set_vector(&instruction, read(results, element));
  }
  for (auto [value, slot] : slots) scratch_.release(slot);
  for (AllocaInst* slot : {results, flags})
    if (slot) scratch_.release(slot);
}

void check_pair(Instruction& instruction) {
  if (!isa<AtomicCmpXchgInst, WithOverflowInst>(instruction)) refuse("a structure as a value");
  for (User* user : instruction.users())
    if (!isa<ExtractValueInst>(user)) refuse("a structure as a value");
}

}  // namespace kiln::widening
