#include "compiler/vectorize/widener_lanes.h"

#include <llvm/Analysis/VectorUtils.h>

#include <bit>
#include <cstdint>

#include "compiler/ir/likely.h"

namespace kiln::widening {

void refuse(std::string reason) { throw Refusal{std::move(reason), nullptr}; }

Instruction* with_operands(const Instruction& instruction, ArrayRef<Value*> operands) {
  Instruction* copy = instruction.clone();
  for (auto [use, operand] : zip_equal(copy->operands(), operands)) use.set(operand);
  return copy;
}

Type* vector_of(Type* type) {
  if (!VectorType::isValidElementType(type)) refuse("a value of a type that has no vectors");
  return FixedVectorType::get(type, kLanes);
}

Value* elements_at(Value* integers, uint64_t byte, Type* element, IRBuilder<>& builder) {
  if (byte != 0) integers = builder.CreateLShr(integers, 8 * byte);
  Type* number = builder.getIntNTy(static_cast<unsigned>(element->getPrimitiveSizeInBits().getFixedValue()));
  return builder.CreateBitCast(builder.CreateTrunc(integers, vector_of(number)), vector_of(element));
}

Constant* lane_numbers(Type* type) {
  SmallVector<Constant*> numbers;
  for (unsigned lane = 0; lane < kLanes; ++lane) numbers.push_back(ConstantInt::get(type, lane));
  return ConstantVector::get(numbers);
}

SmallVector<unsigned> lanes_of(const Value* mask) {
  const auto* flags = dyn_cast<Constant>(mask);
  SmallVector<unsigned> lanes;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const auto* flag = flags ? dyn_cast_or_null<ConstantInt>(flags->getAggregateElement(lane)) : nullptr;
    if (!flag) return {};
    if (flag->isOne()) lanes.push_back(lane);
  }
  return lanes;
}

std::optional<unsigned> only_lane(const Value* mask) {
  const SmallVector<unsigned> lanes = lanes_of(mask);
  return lanes.size() == 1 ? std::optional(lanes[0]) : std::nullopt;
}

namespace {

// Lanes as bits: those that a mask may have, and those that it has.
struct MaskBounds {
  uint32_t may, must;
};

// Masks are narrowed by selects and complemented (widener_flow.cpp).
constexpr unsigned kMaskDepth = 8;

MaskBounds bounds_of(const Value* mask, unsigned depth = 0) {
  MaskBounds unknown{~uint32_t{0}, 0};
  if (const auto* constant = dyn_cast<Constant>(mask)) {
    MaskBounds known{0, 0};
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const auto* bit = dyn_cast_or_null<ConstantInt>(constant->getAggregateElement(lane));
      if (!bit) return unknown;
      if (bit->isOne()) known.may |= uint32_t{1} << lane;
    }
    known.must = known.may;
    return known;
  }
  const auto* instruction = dyn_cast<Instruction>(mask);
  if (!instruction || depth == kMaskDepth) return unknown;
  auto of = [&](unsigned i) { return bounds_of(instruction->getOperand(i), depth + 1); };
  switch (instruction->getOpcode()) {
    case Instruction::Select: {
      if (!instruction->getOperand(0)->getType()->isVectorTy()) return unknown;
      const MaskBounds condition = of(0), one = of(1), other = of(2);
      return {(condition.may & one.may) | (~condition.must & other.may),
              (condition.must & one.must) | (~condition.may & other.must)};
    }
    case Instruction::Xor: {
      const MaskBounds one = of(0), other = of(1);
      return {(one.may & ~other.must) | (other.may & ~one.must), (one.must & ~other.may) | (other.must & ~one.may)};
    }
    case Instruction::And: {
      const MaskBounds one = of(0), other = of(1);
      return {one.may & other.may, one.must & other.must};
    }
    case Instruction::Or: {
      const MaskBounds one = of(0), other = of(1);
      return {one.may | other.may, one.must | other.must};
    }
    default: return unknown;
  }
}

}  // namespace

std::optional<unsigned> only_possible_lane(const Value* mask) {
  const uint32_t may = bounds_of(mask).may;
  return std::has_single_bit(may) ? std::optional(static_cast<unsigned>(std::countr_zero(may))) : std::nullopt;
}

Lanes::Lanes(Function& to, const StructuredFlow& flow, const VectorIsa& isa,
             std::function<Value*(Instruction&, IRBuilder<>&)> emit_postponed)
    : to_(to),
      flow_(flow),
      isa_(isa),
      layout_(to.getDataLayout()),
      emit_postponed_(std::move(emit_postponed)),
      entry_(BasicBlock::Create(to.getContext(), "entry", &to)) {}

Value* Lanes::scalar(Value* value) {
  if (auto found = scalars_.find(value); found != scalars_.end()) return found->second;
  if (isa<Constant, MetadataAsValue, BasicBlock>(value)) return value;
  refuse("a value that was taken to be the same in all threads");
}

Value* Lanes::vector(Value* value, IRBuilder<>& builder) {
  if (auto found = vectors_.find(value); found != vectors_.end()) return found->second;
  if (postponed_.contains(value)) return postponed_vector(cast<Instruction>(*value), builder);
  if (is_divergent(value)) refuse("a value before its definition");
  Type* type = vector_of(value->getType());
  if (auto* constant = dyn_cast<Constant>(value)) {
    if (isa<UndefValue>(constant)) return Constant::getNullValue(type);
    return ConstantVector::getSplat(ElementCount::getFixed(kLanes), constant);
  }
  return builder.CreateVectorSplat(kLanes, scalar(value));
}

Value* Lanes::postponed_vector(Instruction& instruction, IRBuilder<>& builder) {
  auto made = made_in_block_.find({&instruction, builder.GetInsertBlock()});
  if (made != made_in_block_.end()) return made->second;
  Value* widened = emit_postponed_(instruction, builder);
  if (auto* result = dyn_cast<Instruction>(widened)) result->copyIRFlags(&instruction);
  return made_in_block_[{&instruction, builder.GetInsertBlock()}] = widened;
}

Value* Lanes::any(Value* mask, IRBuilder<>& builder) const {
  if (Value* words = word_masks_.lookup(mask))
    return builder.CreateICmpNE(builder.CreateOrReduce(words), builder.getInt32(0));
  return builder.CreateICmpNE(builder.CreateBitCast(mask, builder.getInt32Ty()), builder.getInt32(0));
}

Value* Lanes::narrowed(Value* mask, Value* condition, IRBuilder<>& builder) {
  if (Value* words = word_masks_.lookup(mask))
    return mask_of_words(
        builder.CreateSelect(builder.CreateFreeze(condition), words, Constant::getNullValue(words->getType())),
        builder);
  return builder.CreateLogicalAnd(mask, condition);
}

Value* Lanes::mask_of_words(Value* words, IRBuilder<>& builder) {
  Value* mask = builder.CreateICmpSLT(words, Constant::getNullValue(words->getType()));
  word_masks_[mask] = words;
  return mask;
}

Value* Lanes::all_active(IRBuilder<>& builder) const {
  return builder.CreateICmpEQ(mask_bits(builder), builder.getInt32(-1));
}

Value* Lanes::lanes_of_mask(unsigned first, unsigned count, IRBuilder<>& builder) const {
  return builder.CreateShuffleVector(mask_, createSequentialMask(first, count, 0));
}

BasicBlock* Lanes::create_block(const Twine& name, BasicBlock* after) const {
  BasicBlock* block = BasicBlock::Create(to_.getContext(), name, &to_);
  block->moveAfter(after);
  return block;
}

Values Lanes::create_if_else(const IfElse& branch, IRBuilder<>& builder, Emitter emit_then, Emitter emit_else) {
  BasicBlock* sides[2];
  sides[0] = create_block(branch.then_name, builder.GetInsertBlock());
  sides[1] = create_block(branch.else_name, sides[0]);
  BasicBlock* after = create_block("", sides[1]);
  BranchInst* conditional = builder.CreateCondBr(branch.condition, sides[0], sides[1]);
  if (branch.is_likely) mark_likely(*conditional);
  Values made[2];
  for (unsigned i : {0, 1}) {
    builder.SetInsertPoint(sides[i]);
    scopes_.push_back(++num_scopes_);
    made[i] = i == 0 ? emit_then() : emit_else();
    scopes_.pop_back();
    sides[i] = builder.GetInsertBlock();
    builder.CreateBr(after);
  }
  builder.SetInsertPoint(after);
  Values results;
  for (auto [result, another] : zip_equal(made[0], made[1])) {
    PHINode* phi = builder.CreatePHI(result->getType(), 2);
    phi->addIncoming(result, sides[0]);
    phi->addIncoming(another, sides[1]);
    results.push_back(phi);
  }
  return results;
}

void Lanes::begin_scope() { scopes_ = {++num_scopes_}; }

}  // namespace kiln::widening
