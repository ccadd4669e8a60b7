#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/Support/KnownBits.h>

#include "compiler/ir/simdgroup.h"
#include "compiler/vectorize/widener.h"

namespace kiln::widening {

// By how much the value grows from lane to lane.
std::optional<int64_t> Widener::stride_of(Value* value) {
  if (!is_divergent(value)) return 0;
  if (auto found = strides_.find(value); found != strides_.end()) return found->second;
  // A loop's value has its first one's stride unless the steps show otherwise.
  if (auto* phi = dyn_cast<PHINode>(value)) {
    Loop* loop = loops_.getLoopFor(phi->getParent());
    if (!loop || loop->getHeader() != phi->getParent()) return std::nullopt;
    std::optional<int64_t> stride = stride_of(phi->getIncomingValueForBlock(loop->getLoopPreheader()));
    strides_[value] = stride;
    if (stride && stride_of(phi->getIncomingValueForBlock(loop->getLoopLatch())) != stride) {
      strides_.clear();  // some of them were concluded from this one
      strides_[value] = std::nullopt;
      return std::nullopt;
    }
    return stride;
  }
  return strides_[value] = stride_of_result(value);
}

std::optional<int64_t> Widener::stride_of_result(Value* value) {
  if (is_lane(value)) return 1;
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction) return std::nullopt;
  auto of = [&](unsigned i) { return stride_of(instruction->getOperand(i)); };
  auto same_in_all = [&](unsigned i) { return !is_divergent(instruction->getOperand(i)); };
  switch (instruction->getOpcode()) {
    case Instruction::ZExt:
    case Instruction::SExt:
    case Instruction::Trunc:
    case Instruction::PtrToInt:
    case Instruction::IntToPtr: return of(0);
    case Instruction::Or:
      if (!cast<PossiblyDisjointInst>(instruction)->isDisjoint()) return std::nullopt;
      [[fallthrough]];
    case Instruction::Add:
      // Of two that grow, one could wrap where the other makes up for it.
      if (same_in_all(1)) return of(0);
      if (same_in_all(0)) return of(1);
      return std::nullopt;
    case Instruction::Sub:
      if (same_in_all(1)) return of(0);
      return std::nullopt;
    case Instruction::Mul:
    case Instruction::Shl: {
      auto* factor = dyn_cast<ConstantInt>(instruction->getOperand(1));
      std::optional<int64_t> stride = of(0);
      if (!factor || !stride || factor->getValue().getActiveBits() > 16) return std::nullopt;
      uint64_t by = factor->getZExtValue();
      if (instruction->getOpcode() == Instruction::Shl) {
        if (by > 16) return std::nullopt;
        by = uint64_t{1} << by;
      }
      if (*stride < 0 || static_cast<uint64_t>(*stride) * by > 1 << 16) return std::nullopt;
      return static_cast<int64_t>(*stride * by);
    }
    case Instruction::GetElementPtr: {
      // One of the operands grows: the base, or an index of an array.
      std::optional<unsigned> growing;
      for (unsigned i = 0; i < instruction->getNumOperands(); ++i)
        if (!same_in_all(i)) {
          if (growing) return std::nullopt;
          growing = i;
        }
      std::optional<int64_t> stride = of(*growing);
      if (*growing == 0 || !stride) return stride;
      auto level = gep_type_begin(instruction);
      std::advance(level, *growing - 1);
      uint64_t size = level.getSequentialElementStride(layout_);
      if (size > 1 << 16) return std::nullopt;
      return *stride * static_cast<int64_t>(size);
    }
    default: return std::nullopt;
  }
}

// What `lane` has, if it takes part: a value with a stride, as a number.
Value* Widener::at_lane(Value* value, unsigned lane, IRBuilder<>& builder) {
  if (!is_divergent(value)) return scalar(value);
  if (is_lane(value)) return ConstantInt::get(value->getType(), lane);
  if (auto* phi = dyn_cast<PHINode>(value)) {
    PHINode*& at = lane_phis_[{phi, lane}];
    if (!at) {
      at = PHINode::Create(phi->getType(), 2, phi->getName(), begin_[phi->getParent()]->begin());
      new_lane_phis_.push_back({phi, lane});
    }
    return at;
  }
  auto* instruction = cast<Instruction>(value);
  SmallVector<Value*> operands;
  for (Value* operand : instruction->operands()) operands.push_back(at_lane(operand, lane, builder));
  // A disjoint `or` is a sum in lanes that take part, so that a row may be one where others are not in it:
  // `x[lane | 16]` where `lane < 16`.
  Instruction* one =
      instruction->getOpcode() == Instruction::Or && cast<PossiblyDisjointInst>(instruction)->isDisjoint()
          ? BinaryOperator::CreateAdd(operands[0], operands[1])
          : with_operands(*instruction, operands);
  one->dropPoisonGeneratingFlags();  // the lane may not take part
  builder.Insert(one);
  return one;
}

Widener::Present Widener::present_lanes(IRBuilder<>& builder) {
  Value* bits = builder.CreateBitCast(mask_, builder.getInt32Ty());
  Value* first = builder.CreateBinaryIntrinsic(Intrinsic::cttz, bits, builder.getFalse());
  Value* behind = builder.CreateBinaryIntrinsic(Intrinsic::ctlz, bits, builder.getFalse());
  return {first, builder.CreateSub(builder.getInt32(kLanes - 1), behind)};
}

// Whether something narrower than an address is taken off what grows, as in `x[i - 1]`.
bool Widener::reaches_back(Value* value) {
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || !is_divergent(value) || is_lane(value) || isa<PHINode>(instruction)) return false;
  bool is_narrow = instruction->getType()->isIntegerTy() && instruction->getType()->getIntegerBitWidth() < 64;
  if (is_narrow && instruction->getOpcode() == Instruction::Sub) return true;
  if (is_narrow && instruction->getOpcode() == Instruction::Add) {
    auto* constant = dyn_cast<ConstantInt>(instruction->getOperand(1));
    if (constant && constant->isNegative()) return true;
  }
  return any_of(instruction->operands(), [&](Use& operand) { return reaches_back(operand.get()); });
}

bool Widener::can_be_at_a_lane(Value* value) {
  if (!is_divergent(value) || is_lane(value)) return true;
  auto* instruction = dyn_cast<Instruction>(value);
  return instruction && !isa<PHINode>(instruction) &&
         all_of(instruction->operands(), [&](Use& operand) { return can_be_at_a_lane(operand.get()); });
}

// What a lane has that is known when the code runs, and takes part.
Value* Widener::at_present_lane(Value* value, Value* lane, IRBuilder<>& builder) {
  if (!is_divergent(value)) return scalar(value);
  if (is_lane(value)) return builder.CreateZExtOrTrunc(lane, value->getType());
  auto* instruction = cast<Instruction>(value);
  SmallVector<Value*> operands;
  for (Value* operand : instruction->operands()) operands.push_back(at_present_lane(operand, lane, builder));
  Instruction* one = with_operands(*instruction, operands);
  one->dropPoisonGeneratingFlags();  // where no lane takes part
  return builder.Insert(one);
}

void Widener::complete_lane_phis() {
  while (!new_lane_phis_.empty()) {
    auto [phi, lane] = new_lane_phis_.pop_back_val();
    PHINode* at = lane_phis_[{phi, lane}];
    for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
      BasicBlock* before = end_[phi->getIncomingBlock(i)];
      IRBuilder<> builder(before->getTerminator());
      at->addIncoming(at_lane(phi->getIncomingValue(i), lane, builder), before);
    }
  }
}

// Whether the lanes' values grow as their stride says, from the first to the last. What may wrap is narrower than an
// address: it is asked of what the address is computed from, so that one answer serves accesses that are a constant
// apart.
Value* Widener::is_row(Value* value, IRBuilder<>& builder) {
  if (is_certain(value)) return builder.getTrue();
  auto* instruction = cast<Instruction>(value);
  if (grows_with_operand(*instruction))
    for (Value* operand : instruction->operands())
      // A narrower index of an array would be extended.
      if (is_divergent(operand) && layout_.getTypeSizeInBits(operand->getType()) == 64) return is_row(operand, builder);
  Type* number = builder.getInt64Ty();
  auto at = [&](unsigned lane) {
    Value* one = at_lane(value, lane, builder);
    return one->getType()->isPointerTy() ? builder.CreatePtrToInt(one, number) : builder.CreateZExt(one, number);
  };
  if (std::optional<int64_t> stride = stride_of(value))
    return builder.CreateICmpEQ(builder.CreateSub(at(kLanes - 1), at(0)),
                                builder.getInt64(static_cast<uint64_t>(*stride) * (kLanes - 1)));
  std::optional<Pattern> pattern = pattern_of(value);
  return builder.CreateICmpEQ(builder.CreateSub(at(pattern->highest), at(pattern->lowest)),
                              builder.getInt64(pattern->offsets[pattern->highest]));
}

// Whether it cannot wrap, but for what its operands do. Addresses wrap as their distances do.
bool Widener::grows_with_operand(const Instruction& instruction) {
  bool is_wide = instruction.getType()->isPointerTy() || instruction.getType()->isIntegerTy(64);
  switch (instruction.getOpcode()) {
    case Instruction::PtrToInt:
    case Instruction::IntToPtr:
    case Instruction::GetElementPtr:
    case Instruction::Or:
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Mul:
    case Instruction::Shl: return is_wide;
    default: return false;
  }
}

// Whether its highest bit is the same in all lanes.
bool Widener::has_one_sign(Value* value) {
  if (!is_divergent(value)) return true;
  if (auto values = values_of(value))
    return all_of(*values, [&](const APInt& one) { return one.isNegative() == values->front().isNegative(); });
  auto* instruction = dyn_cast<Instruction>(value);
  if (instruction && instruction->isBitwiseLogicOp())
    return has_one_sign(instruction->getOperand(0)) && has_one_sign(instruction->getOperand(1));
  return computeKnownBits(value, layout_).isNonNegative();
}

// Whether the value grows from lane to lane as its stride says, whatever other values are: nothing in it can wrap.
bool Widener::is_certain(Value* value) {
  if (!is_divergent(value)) return true;
  if (auto values = values_of(value)) {
    // What is narrow may have wrapped, which its stride does not know. A pattern is made of the values themselves.
    std::optional<int64_t> stride = stride_of(value);
    for (unsigned lane = 0; stride && lane < kLanes; ++lane)
      if ((*values)[lane].getZExtValue() - (*values)[0].getZExtValue() != static_cast<uint64_t>(*stride) * lane)
        return false;
    return true;
  }
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || isa<PHINode>(instruction)) return false;
  switch (instruction->getOpcode()) {
    case Instruction::SExt:
      if (!has_one_sign(instruction->getOperand(0))) return false;
      break;
    case Instruction::Or:
    case Instruction::ZExt:
    case Instruction::PtrToInt:
    case Instruction::IntToPtr: break;
    default:
      if (!grows_with_operand(*instruction)) return false;
  }
  return all_of(instruction->operands(), [&](Use& operand) { return is_certain(operand.get()); });
}

// Whether an access is of registers with a mask, whichever lanes take part.
bool Widener::is_masked_row(Value* pointer, uint64_t bytes) {
  return has_avx512_ && step_of(pointer, bytes) == 1 && is_certain(pointer);
}

// The lanes for which a number that grows from lane to lane, as an access's offset, is below a limit, as an array's
// size: those that follow one another, from the first one that is not before the array. Null where that is not known.
// Vectors of 64 bits would have to be made and compared.
Value* Widener::lanes_below(CmpInst& comparison, IRBuilder<>& builder) {
  Value *number = comparison.getOperand(0), *limit = comparison.getOperand(1);
  if (comparison.getPredicate() != CmpInst::ICMP_ULT || !number->getType()->isIntegerTy(64) || is_divergent(limit))
    return nullptr;
  std::optional<int64_t> stride = stride_of(number);
  if (!stride || *stride <= 0 || !isPowerOf2_64(static_cast<uint64_t>(*stride)) || !is_certain(number)) return nullptr;
  // So that the limit less a number below zero, as far as lanes reach, is no number below zero.
  if (computeKnownBits(limit, layout_).countMinLeadingZeros() < 2) return nullptr;
  auto step = static_cast<uint64_t>(*stride);
  auto signed_number = [&](Intrinsic::ID which, Value* one, uint64_t other) {
    return builder.CreateBinaryIntrinsic(which, one, builder.getInt64(other));
  };
  // How many lanes begin within so many bytes.
  auto lanes_in = [&](Value* bytes) {
    bytes = signed_number(Intrinsic::smax, signed_number(Intrinsic::smin, bytes, kLanes * step), 0);
    return builder.CreateLShr(builder.CreateAdd(bytes, builder.getInt64(step - 1)), Log2_64(step));
  };
  Value* first = at_lane(number, 0, builder);
  Value* behind = lanes_in(builder.CreateSub(scalar(limit), first));
  Value* before = computeKnownBits(first, layout_).isNonNegative() ? nullptr : lanes_in(builder.CreateNeg(first));
  if (!has_avx512_) {
    auto compare = [&](CmpInst::Predicate predicate, Value* lane) {
      Value* lanes = builder.CreateVectorSplat(kLanes, builder.CreateTrunc(lane, builder.getInt8Ty()));
      return builder.CreateICmp(predicate, lane_numbers(builder.getInt8Ty()), lanes);
    };
    Value* lanes = compare(CmpInst::ICMP_SLT, behind);
    return before ? builder.CreateAnd(lanes, compare(CmpInst::ICMP_SGE, before)) : lanes;
  }
  Value* bits = builder.CreateSub(builder.CreateShl(builder.getInt64(1), behind), builder.getInt64(1));
  if (before) bits = builder.CreateAnd(bits, builder.CreateShl(builder.getInt64(-1), before));
  return builder.CreateBitCast(builder.CreateTrunc(bits, builder.getInt32Ty()), mask_type_);
}

}  // namespace kiln::widening
