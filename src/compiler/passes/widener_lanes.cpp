#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/LowerAtomic.h>

#include "compiler/metal/token_rewriter.h"
#include "compiler/passes/locked_rows.h"
#include "compiler/passes/loop_unrolling.h"
#include "compiler/passes/uniformity.h"
#include "compiler/passes/widener.h"

namespace kiln::widening {

// Where there is much of it, places are used again; otherwise what does not change in a loop can be stored before it.
constexpr uint64_t kMostScratch = 64 << 10;

// Memory that is written before it is read, at each place that uses it.
AllocaInst* Widener::scratch(Type* type) {
  if (SmallVector<AllocaInst*>& unused = unused_scratch_[type]; scratch_bytes_ > kMostScratch && !unused.empty())
    return unused.pop_back_val();
  scratch_bytes_ += layout_.getTypeAllocSize(type);
  AllocaInst* place = IRBuilder<>(allocas_).CreateAlloca(type);
  place->setMetadata(kScratch, MDNode::get(context_, {}));
  return place;
}

// Of what a loop over lanes needs, what is there as vectors. What is postponed is computed in the loop, from the lane's
// number where it can be: that is shorter than vectors of addresses.
void Widener::store_leaves(Value* value, LanePlaces& places, IRBuilder<>& builder) {
  if (!differs(value) || is_lane(value) || places.contains(value)) return;
  if (postponed_.contains(value)) {
    for (Value* operand : cast<Instruction>(value)->operands()) store_leaves(operand, places, builder);
    return;
  }
  Value* lanes = vector(value, builder);
  if (lanes->getType()->getScalarType()->isIntegerTy(1))
    lanes = builder.CreateZExt(lanes, vector_of(builder.getInt8Ty()));
  AllocaInst* place = places[value] = scratch(lanes->getType());
  builder.CreateStore(lanes, place);
}

Value* Widener::at_lane_of_loop(Value* value, Value* lane, const LanePlaces& places, IRBuilder<>& builder) {
  if (!differs(value)) return scalar(value);
  if (is_lane(value)) return builder.CreateZExtOrTrunc(lane, value->getType());
  if (Value* place = places.lookup(value)) {
    bool is_flag = value->getType()->isIntegerTy(1);
    Type* in_memory = is_flag ? builder.getInt8Ty() : value->getType();
    Value* loaded = builder.CreateLoad(in_memory, builder.CreateGEP(in_memory, place, lane));
    return is_flag ? builder.CreateTrunc(loaded, builder.getInt1Ty()) : loaded;
  }
  if (!postponed_.contains(value)) return builder.CreateExtractElement(vector(value, builder), lane);
  auto& instruction = cast<Instruction>(*value);
  SmallVector<Value*> operands;
  for (Value* operand : instruction.operands()) operands.push_back(at_lane_of_loop(operand, lane, places, builder));
  return builder.Insert(with_operands(instruction, operands));
}

// The one lane of a mask, if it is known.
static std::optional<unsigned> only_lane(const Value* mask) {
  const auto* lanes = dyn_cast<Constant>(mask);
  std::optional<unsigned> only;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const auto* flag = lanes ? dyn_cast_or_null<ConstantInt>(lanes->getAggregateElement(lane)) : nullptr;
    if (!flag || (flag->isOne() && only)) return std::nullopt;
    if (flag->isOne()) only = lane;
  }
  return only;
}

// Runs the instruction for a lane, as where `thread_index_in_simdgroup == 0`.
void Widener::in_lane(unsigned lane, Instruction& instruction, IRBuilder<>& builder, bool may_be_alone) {
  SmallVector<Value*> operands;
  for (Value* operand : instruction.operands())
    operands.push_back(at_lane_of_loop(operand, builder.getInt32(lane), {}, builder));
  Value* made = make_one(instruction, *with_operands(instruction, operands), may_be_alone, builder);
  auto in_vector = [&](Value* value) {
    return builder.CreateInsertElement(Constant::getNullValue(vector_of(value->getType())), value, uint64_t{lane});
  };
  if (instruction.getType()->isStructTy()) {
    for (User* user : instruction.users())
      vectors_[user] = in_vector(builder.CreateExtractValue(made, cast<ExtractValueInst>(user)->getIndices()));
  } else if (!instruction.getType()->isVoidTy()) {
    vectors_[&instruction] = in_vector(made);
  }
}

// Runs the instruction for each lane of the mask, in a loop. Its operands and results are in memory there.
void Widener::each_lane(Instruction& instruction, IRBuilder<>& builder, bool may_be_alone) {
  Type* type = instruction.getType();
  auto* pair = dyn_cast<StructType>(type);  // cmpxchg
  if (pair) check_pair(instruction);
  if (auto lane = only_lane(mask_)) return in_lane(*lane, instruction, builder, may_be_alone);
  LanePlaces places;
  for (Value* operand : instruction.operands()) store_leaves(operand, places, builder);
  Type* element = pair ? pair->getElementType(0) : type;
  bool is_flag = element->isIntegerTy(1);
  Type* stored = is_flag ? builder.getInt8Ty() : element;
  AllocaInst *results = nullptr, *flags = nullptr;
  if (!type->isVoidTy()) {
    results = scratch(vector_of(stored));
    builder.CreateStore(Constant::getNullValue(vector_of(stored)), results);
  }
  if (pair) {
    flags = scratch(vector_of(builder.getInt8Ty()));
    builder.CreateStore(Constant::getNullValue(vector_of(builder.getInt8Ty())), flags);
  }
  BasicBlock* before = builder.GetInsertBlock();
  BasicBlock* body = BasicBlock::Create(context_, "lane", &to_);
  BasicBlock* after = BasicBlock::Create(context_, "lanes.end", &to_);
  body->moveAfter(before);
  after->moveAfter(body);
  Value* bits = builder.CreateBitCast(mask_, builder.getInt32Ty());
  builder.CreateCondBr(builder.CreateICmpNE(bits, builder.getInt32(0)), body, after);

  builder.SetInsertPoint(body);
  PHINode* rest = builder.CreatePHI(builder.getInt32Ty(), 2, "rest");
  rest->addIncoming(bits, before);
  Value* lane = builder.CreateBinaryIntrinsic(Intrinsic::cttz, rest, builder.getTrue());
  SmallVector<Value*> operands;
  for (Value* operand : instruction.operands()) operands.push_back(at_lane_of_loop(operand, lane, places, builder));
  Value* made = make_one(instruction, *with_operands(instruction, operands), may_be_alone, builder);
  if (results) {
    Value* value = pair ? builder.CreateExtractValue(made, 0) : made;
    if (is_flag) value = builder.CreateZExt(value, stored);
    builder.CreateStore(value, builder.CreateGEP(stored, results, lane));
  }
  if (flags)
    builder.CreateStore(builder.CreateZExt(builder.CreateExtractValue(made, 1), builder.getInt8Ty()),
                        builder.CreateGEP(builder.getInt8Ty(), flags, lane));
  Value* less = builder.CreateAnd(rest, builder.CreateSub(rest, builder.getInt32(1)));
  rest->addIncoming(less, builder.GetInsertBlock());
  // Where the mask is known, 32 copies would be made.
  never_unroll(*builder.CreateCondBr(builder.CreateICmpNE(less, builder.getInt32(0)), body, after));

  builder.SetInsertPoint(after);
  auto read = [&](Value* place, Type* of, bool flag) -> Value* {
    Value* value = builder.CreateLoad(vector_of(of), place);
    return flag ? builder.CreateTrunc(value, mask_type_) : value;
  };
  if (pair) {
    for (User* user : instruction.users()) {
      auto* part = cast<ExtractValueInst>(user);
      vectors_[part] =
          part->getIndices()[0] == 0 ? read(results, stored, is_flag) : read(flags, builder.getInt8Ty(), true);
    }
  } else if (results) {
    vectors_[&instruction] = read(results, stored, is_flag);
  }
  for (auto [value, place] : places) unused_scratch_[place->getAllocatedType()].push_back(place);
  for (AllocaInst* place : {results, flags})
    if (place) unused_scratch_[place->getAllocatedType()].push_back(place);
}

// An atomic may be a load and a store where the launch is alone.
Value* Widener::make_one(Instruction& instruction, Instruction& one, bool may_be_alone, IRBuilder<>& builder) {
  auto* atomic = dyn_cast<AtomicRMWInst>(&one);
  Value* alone = atomic && may_be_alone ? is_alone(instruction) : nullptr;
  if (!alone) return builder.Insert(&one);
  auto make_plain = [&]() -> Values {
    Value* before = builder.CreateAlignedLoad(atomic->getType(), atomic->getPointerOperand(), atomic->getAlign());
    Value* after = buildAtomicRMWValue(atomic->getOperation(), builder, before, atomic->getValOperand());
    builder.CreateAlignedStore(after, atomic->getPointerOperand(), atomic->getAlign());
    return {before};
  };
  if (isa<Constant>(alone)) {
    Value* before = make_plain()[0];
    one.deleteValue();
    return before;
  }
  auto make_locked = [&]() -> Values { return {builder.Insert(&one)}; };
  return either({scalar(alone), "plain", "atomic", false}, builder, make_plain, make_locked)[0];
}

// In the code of one thread, before all of it.
void Widener::ask_whether_alone(uint64_t offset) {
  if (offset == 0 || none_of(instructions(from_), [](const Instruction& i) { return isa<AtomicRMWInst>(i); })) return;
  IRBuilder<> builder(&*from_.getEntryBlock().getFirstInsertionPt());
  LoadInst* said = builder.CreateLoad(
      builder.getInt32Ty(), builder.CreateInBoundsGEP(builder.getInt8Ty(), from_.getArg(0), builder.getInt64(offset)));
  said->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(context_, {}));
  alone_ = builder.CreateICmpNE(said, builder.getInt32(0));
}

// Null where it must be an atomic in any case. The threads of a threadgroup are all run by one of the process.
Value* Widener::is_alone(Instruction& instruction) {
  auto& atomic = cast<AtomicRMWInst>(instruction);
  const auto* variable = dyn_cast<GlobalVariable>(getUnderlyingObject(place_of(atomic).address));
  if (variable && variable->getSection() == kThreadgroupSection) return ConstantInt::getTrue(context_);
  return alone_;
}

void Widener::widen_atomic(AtomicRMWInst& atomic, IRBuilder<>& builder) {
  Guarded place = place_of(atomic);
  if (!place.allowed) return widen_allowed_atomic(atomic, builder);
  if (is_updated_row(atomic, place.address) && is_limited_row(place, sizeof(float)))
    return update_limited_row(atomic, place, builder);
  atomic.setOperand(AtomicRMWInst::getPointerOperandIndex(), place.address);
  Value* all = std::exchange(mask_, narrowed(mask_, vector(place.allowed, builder), builder));
  auto some = [&]() -> Values {
    widen_allowed_atomic(atomic, builder);
    return {};
  };
  either({any(mask_, builder), "some", "none", false}, builder, some, [] { return Values(); });
  mask_ = all;
}

// Whether floats of a row are changed, of which nobody gets what was there, and which others may change, too.
bool Widener::is_updated_row(AtomicRMWInst& atomic, Value* pointer) {
  Value* alone = is_alone(atomic);
  return alone && !isa<Constant>(alone) && atomic.getType()->isFloatTy() &&
         AtomicRMWInst::isFPOperation(atomic.getOperation()) && atomic.use_empty() && differs(pointer) &&
         step_of(pointer, sizeof(float)) == 1 && !only_lane(mask_);
}

// Nobody else changes what is there.
Value* Widener::update_alone(AtomicRMWInst& atomic, Value* address, IRBuilder<>& builder) {
  Value* operand = vector(atomic.getValOperand(), builder);
  Type* type = operand->getType();
  bool are_all = is_all(mask_);
  Value* before = are_all
                      ? static_cast<Value*>(builder.CreateAlignedLoad(type, address, atomic.getAlign()))
                      : builder.CreateMaskedLoad(type, address, atomic.getAlign(), mask_, Constant::getNullValue(type));
  Value* after = buildAtomicRMWValue(atomic.getOperation(), builder, before, operand);
  if (are_all)
    builder.CreateAlignedStore(after, address, atomic.getAlign());
  else
    builder.CreateMaskedStore(after, address, atomic.getAlign(), mask_);
  return before;
}

// Alone if the guard lets all of the row through.
void Widener::update_limited_row(AtomicRMWInst& atomic, const Guarded& place, IRBuilder<>& builder) {
  auto* comparison = cast<ICmpInst>(place.allowed);
  Value* address = at_lane(place.address, 0, builder);
  RowGuard guard{at_lane(comparison->getOperand(0), 0, builder), scalar(comparison->getOperand(1))};
  Value* is_inside = builder.CreateICmpULT(guard.offset, less(guard.limit, (kLanes - 1) * sizeof(float)));
  auto row = [&]() -> Values {
    update_alone(atomic, address, builder);
    return {};
  };
  auto lanes = [&]() -> Values {
    update_shared_row(atomic, address, guard, builder);
    return {};
  };
  // Which of both is usual is the launch's to say.
  either({builder.CreateAnd(is_inside, scalar(is_alone(atomic))), "row", "lanes", false}, builder, row, lanes);
}

void Widener::widen_allowed_atomic(AtomicRMWInst& atomic, IRBuilder<>& builder) {
  Value *alone = is_alone(atomic), *pointer = atomic.getPointerOperand();
  uint64_t bytes = layout_.getTypeStoreSize(atomic.getType());
  if (!alone || !is_word(bytes) || !differs(pointer) || step_of(pointer, bytes) != 1 || only_lane(mask_))
    return each_lane(atomic, builder);
  // A row's places are different ones.
  bool is_updated = is_updated_row(atomic, pointer);
  Type* type = vector(atomic.getValOperand(), builder)->getType();
  auto together = [&](Value* address) -> Values { return {update_alone(atomic, address, builder)}; };
  auto apart = [&]() -> Values {
    if (is_updated) {
      update_shared(atomic, builder);
      return {Constant::getNullValue(type)};
    }
    each_lane(atomic, builder);
    return {vectors_[&atomic]};
  };
  vectors_[&atomic] = by_shape(pointer, isa<Constant>(alone) ? nullptr : alone, {bytes, bytes * (kLanes - 1), true},
                               builder, together, apart)[0];
}

// By a function that all rows of the module share.
void Widener::update_shared_row(AtomicRMWInst& atomic, Value* address, const std::optional<RowGuard>& guard,
                                IRBuilder<>& builder) {
  Value* operand = vector(atomic.getValOperand(), builder);
  AllocaInst* operands = scratch(operand->getType());
  builder.CreateStore(operand, operands);
  update_locked_row(atomic, address, operands, builder.CreateBitCast(mask_, builder.getInt32Ty()), guard, builder);
  unused_scratch_[operand->getType()].push_back(operands);
}

// Where it is a row, which is asked when the code runs.
void Widener::update_shared(AtomicRMWInst& atomic, IRBuilder<>& builder) {
  std::optional<Asked> asked =
      ask_for_row(atomic.getPointerOperand(), nullptr, {sizeof(float), sizeof(float) * (kLanes - 1), true}, builder);
  auto together = [&]() -> Values {
    update_shared_row(atomic, asked->first, std::nullopt, builder);
    return {};
  };
  if (const auto* known = dyn_cast<ConstantInt>(asked->is_row); known && known->isOne()) {
    together();
    return;
  }
  // A launch that is alone comes here with what is no row, which is rare.
  auto apart = [&]() -> Values {
    each_lane(atomic, builder, /*may_be_alone=*/false);
    return {};
  };
  either({asked->is_row, "row", "lanes", false}, builder, together, apart);
}

void Widener::check_pair(Instruction& instruction) {
  if (!isa<AtomicCmpXchgInst, WithOverflowInst>(instruction)) refuse("a structure as a value");
  for (User* user : instruction.users())
    if (!isa<ExtractValueInst>(user)) refuse("a structure as a value");
}

}  // namespace kiln::widening
