#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/Support/KnownBits.h>

#include "compiler/ir/simdgroup.h"
#include "compiler/vectorize/widener.h"

namespace kiln::widening {

// Sums and casts in a row, of a number whose range is found.
constexpr unsigned kRangeDepth = 16;

// The difference between the values of adjacent lanes.
std::optional<int64_t> Widener::stride_of(Value* value) {
  if (!lanes_.is_divergent(value)) return 0;
  if (auto found = strides_.find(value); found != strides_.end()) return found->second;
  // Assume that a loop's phi has the stride of its start value, unless the latch's value has another.
  if (auto* phi = dyn_cast<PHINode>(value)) {
    Loop* loop = loops_.getLoopFor(phi->getParent());
    if (!loop || loop->getHeader() != phi->getParent()) return std::nullopt;
    Value *start = phi->getIncomingValueForBlock(loop->getLoopPreheader()),
          *next = phi->getIncomingValueForBlock(loop->getLoopLatch());
    std::optional<int64_t> stride = stride_of(start);
    if (stride && has_piece(start)) stride.reset();
    strides_[value] = stride;
    if (stride && (stride_of(next) != stride || has_piece(next))) {
      strides_.clear();  // some were derived from the assumption
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
  if (std::optional<Piece> piece = piece_of(*instruction)) return piece->stride;
  auto of = [&](unsigned i) { return stride_of(instruction->getOperand(i)); };
  auto is_uniform = [&](unsigned i) { return !lanes_.is_divergent(instruction->getOperand(i)); };
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
      // If both operands are divergent, one could wrap and the other make up for it.
      if (is_uniform(1)) return of(0);
      if (is_uniform(0)) return of(1);
      // A piece of stride 0 is the same in all lanes wherever the stride counts.
      if (of(0) == 0) return of(1);
      if (of(1) == 0) return of(0);
      return std::nullopt;
    case Instruction::Sub:
      if (is_uniform(1)) return of(0);
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
      // One operand is divergent: the base, or an array index.
      std::optional<unsigned> divergent_index;
      for (unsigned i = 0; i < instruction->getNumOperands(); ++i)
        if (!is_uniform(i)) {
          if (divergent_index) return std::nullopt;
          divergent_index = i;
        }
      std::optional<int64_t> stride = of(*divergent_index);
      if (*divergent_index == 0 || !stride) return stride;
      auto level = gep_type_begin(instruction);
      std::advance(level, *divergent_index - 1);
      uint64_t size = level.getSequentialElementStride(layout_);
      if (size > 1 << 16) return std::nullopt;
      return *stride * static_cast<int64_t>(size);
    }
    default: return std::nullopt;
  }
}

// The scalar that `lane` has, if it is active, of a value with a stride.
Value* Widener::at_lane(Value* value, unsigned lane, IRBuilder<>& builder) {
  if (!lanes_.is_divergent(value)) return lanes_.scalar(value);
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
  if (std::optional<Piece> piece = piece_of(*instruction)) return at_lane_of_piece(*instruction, *piece, lane, builder);
  SmallVector<Value*> operands;
  for (Value* operand : instruction->operands()) operands.push_back(at_lane(operand, lane, builder));
  // A disjoint `or` is a sum in active lanes. As a sum the access can be consecutive even if inactive lanes are not
  // disjoint: `x[lane | 16]` under `lane < 16`.
  Instruction* one =
      instruction->getOpcode() == Instruction::Or && cast<PossiblyDisjointInst>(instruction)->isDisjoint()
          ? BinaryOperator::CreateAdd(operands[0], operands[1])
          : with_operands(*instruction, operands);
  one->dropPoisonGeneratingFlags();  // the lane may be inactive
  builder.Insert(one);
  return one;
}

Widener::ActiveLanes Widener::active_lanes(IRBuilder<>& builder) {
  Value* bits = lanes_.mask_bits(builder);
  Value* first = builder.CreateBinaryIntrinsic(Intrinsic::cttz, bits, builder.getFalse());
  Value* leading_zeros = builder.CreateBinaryIntrinsic(Intrinsic::ctlz, bits, builder.getFalse());
  return {first, builder.CreateSub(builder.getInt32(kLanes - 1), leading_zeros)};
}

// Whether a number narrower than an address is subtracted from a divergent value, as in `x[i - 1]`.
bool Widener::has_negative_offset(Value* value) {
  SmallVector<Value*> left{value};
  SmallPtrSet<Value*, 16> seen;
  while (!left.empty()) {
    Value* next = left.pop_back_val();
    auto* instruction = dyn_cast<Instruction>(next);
    if (!instruction || !lanes_.is_divergent(next) || is_lane(next) || isa<PHINode>(instruction) ||
        !seen.insert(next).second)
      continue;
    const bool is_narrow = next->getType()->isIntegerTy() && next->getType()->getIntegerBitWidth() < 64;
    if (is_narrow && instruction->getOpcode() == Instruction::Sub) return true;
    if (is_narrow && instruction->getOpcode() == Instruction::Add) {
      auto* constant = dyn_cast<ConstantInt>(instruction->getOperand(1));
      if (constant && constant->isNegative()) return true;
    }
    append_range(left, instruction->operand_values());
  }
  return false;
}

bool Widener::can_be_computed_at_lane(Value* value) {
  if (!lanes_.is_divergent(value) || is_lane(value)) return true;
  auto* instruction = dyn_cast<Instruction>(value);
  return instruction && !isa<PHINode>(instruction) &&
         all_of(instruction->operands(), [&](Use& operand) { return can_be_computed_at_lane(operand.get()); });
}

// Whether a few scalar operations compute what a lane has. `left` counts them down.
bool Widener::is_cheap_at_lane(Value* value, unsigned& left) {
  if (!lanes_.is_divergent(value) || is_lane(value)) return true;
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || left == 0 ||
      !isa<BinaryOperator, CastInst, CmpInst, SelectInst, GetElementPtrInst>(instruction) ||
      !isSafeToSpeculativelyExecute(instruction))
    return false;
  --left;
  return all_of(instruction->operands(), [&](Use& operand) { return is_cheap_at_lane(operand.get(), left); });
}

// The value of an active lane whose index is known at run time only.
Value* Widener::at_active_lane(Value* value, Value* lane, IRBuilder<>& builder) {
  if (!lanes_.is_divergent(value)) return lanes_.scalar(value);
  if (is_lane(value)) return builder.CreateZExtOrTrunc(lane, value->getType());
  auto* instruction = cast<Instruction>(value);
  SmallVector<Value*> operands;
  for (Value* operand : instruction->operands()) operands.push_back(at_active_lane(operand, lane, builder));
  Instruction* one = with_operands(*instruction, operands);
  one->dropPoisonGeneratingFlags();  // no lane may be active
  return builder.Insert(one);
}

void Widener::complete_lane_phis() {
  while (!new_lane_phis_.empty()) {
    auto [phi, lane] = new_lane_phis_.pop_back_val();
    PHINode* at = lane_phis_[{phi, lane}];
    for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
      BasicBlock* pred = end_[phi->getIncomingBlock(i)];
      IRBuilder<> builder(pred->getTerminator());
      at->addIncoming(at_lane(phi->getIncomingValue(i), lane, builder), pred);
    }
  }
}

// Emits a check that the lanes' values follow their stride, from the first lane to the last. Only what is narrower than
// an address may wrap. The check is on the value from which the address is computed, so that one check serves accesses
// at constant distances.
Value* Widener::check_stride(Value* value, IRBuilder<>& builder) {
  CheckedPieces checked;
  return check_stride(value, checked, builder);
}

Value* Widener::check_stride(Value* value, CheckedPieces& checked, IRBuilder<>& builder) {
  Value* pieces = check_pieces(value, checked, builder);
  return builder.CreateAnd(pieces, check_wrapping(value, builder));
}

Value* Widener::check_wrapping(Value* value, IRBuilder<>& builder) {
  if (never_wraps(value)) return builder.getTrue();
  auto* instruction = cast<Instruction>(value);
  if (wraps_only_with_operands(*instruction))
    for (Value* operand : instruction->operands())
      // A narrower array index would be extended.
      if (lanes_.is_divergent(operand) && layout_.getTypeSizeInBits(operand->getType()) == 64)
        return check_wrapping(operand, builder);
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

// Whether a lane's value is the first lane's plus so many strides, modulo the type's size.
bool Widener::wraps_as_a_whole(Value* value, SmallPtrSetImpl<Instruction*>& seen) {
  if (!lanes_.is_divergent(value) || is_lane(value) || values_of(value) || lane_bits(value)) return true;
  auto* instruction = cast<Instruction>(value);
  if (!seen.insert(instruction).second) return true;
  auto all_operands = [&](auto&& operands) {
    return all_of(operands, [&](Value* operand) { return wraps_as_a_whole(operand, seen); });
  };
  if (auto* phi = dyn_cast<PHINode>(instruction)) return all_operands(phi->incoming_values());
  if (std::optional<Piece> piece = piece_of(*instruction)) {
    if (Value* only = piece->side ? piece->side : piece->dividend) return wraps_as_a_whole(only, seen);
    return !isa<SelectInst>(instruction) || all_operands(drop_begin(instruction->operands()));
  }
  return wraps_only_with_operands(*instruction, /*in_any_width=*/true) && all_operands(instruction->operands());
}

// Where numbers end that are extended to an access's offset, in its unit. An offset below that, less the reach of the
// lanes, is one of lanes that do not wrap.
std::optional<uint64_t> Widener::end_of_extension(Value* offset) {
  std::optional<int64_t> stride = stride_of(offset);
  if (!stride || *stride <= 0) return std::nullopt;
  uint64_t scale = 1;
  auto* step = dyn_cast<Instruction>(offset);
  while (step && (step->getOpcode() == Instruction::Shl || step->getOpcode() == Instruction::Mul)) {
    auto* by = dyn_cast<ConstantInt>(step->getOperand(1));
    if (!by || by->getValue().getActiveBits() > 16) return std::nullopt;
    if (step->getOpcode() == Instruction::Shl && by->getZExtValue() > 16) return std::nullopt;
    scale *= step->getOpcode() == Instruction::Shl ? uint64_t{1} << by->getZExtValue() : by->getZExtValue();
    if (scale > 1 << 16) return std::nullopt;
    step = dyn_cast<Instruction>(step->getOperand(0));
  }
  SmallPtrSet<Instruction*, 16> seen;
  if (!step || !isa<SExtInst, ZExtInst>(step) || step->getOperand(0)->getType()->isIntegerTy(1) ||
      step->getOperand(0)->getType()->getIntegerBitWidth() > 32 || !wraps_as_a_whole(step->getOperand(0), seen))
    return std::nullopt;
  return scale << (step->getOperand(0)->getType()->getIntegerBitWidth() - isa<SExtInst>(step));
}

// A check that the lanes' offsets are below the limit, to the end of the reach, and follow their stride.
Value* Widener::check_bounds(Value* offset, Value* limit, unsigned lowest, uint64_t reach, CheckedPieces& checked,
                             IRBuilder<>& builder) {
  Value *first = at_lane(offset, lowest, builder), *end = lanes_.scalar(limit);
  if (std::optional<uint64_t> extended = lowest == 0 ? end_of_extension(offset) : std::nullopt;
      extended && reach >= static_cast<uint64_t>(*stride_of(offset)) * (kLanes - 1))
    return builder.CreateAnd(builder.CreateICmpULT(first, reduced_limit(end, reach, extended)),
                             check_pieces(offset, checked, builder));
  return builder.CreateAnd(builder.CreateICmpULT(first, reduced_limit(end, reach)),
                           check_stride(offset, checked, builder));
}

// Whether it cannot wrap unless its operands do. Addresses wrap as their distances do.
bool Widener::wraps_only_with_operands(const Instruction& instruction, bool in_any_width) {
  bool is_wide = in_any_width || instruction.getType()->isPointerTy() || instruction.getType()->isIntegerTy(64);
  switch (instruction.getOpcode()) {
    case Instruction::Trunc: return in_any_width;
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

// Whether the sign bit is uniform.
bool Widener::has_uniform_sign(Value* value) {
  if (!lanes_.is_divergent(value)) return true;
  if (auto values = values_of(value))
    return all_of(*values, [&](const APInt& one) { return one.isNegative() == values->front().isNegative(); });
  auto* instruction = dyn_cast<Instruction>(value);
  if (instruction && instruction->isBitwiseLogicOp())
    return has_uniform_sign(instruction->getOperand(0)) && has_uniform_sign(instruction->getOperand(1));
  return computeKnownBits(value, layout_).isNonNegative();
}

// Whether a narrow sum, or product with a constant, is small whichever lanes are active, so that it cannot wrap.
bool Widener::is_small_sum(const Instruction& instruction) const {
  // Without flags, which hold in active lanes only.
  auto known = [&](const Value* value) {
    return computeKnownBits(value, layout_, /*Depth=*/0, /*AC=*/nullptr, /*CxtI=*/nullptr, /*DT=*/nullptr,
                            /*UseInstrInfo=*/false);
  };
  bool overflows = false;
  switch (instruction.getOpcode()) {
    case Instruction::Add:
      (void)known(instruction.getOperand(0))
          .getMaxValue()
          .uadd_ov(known(instruction.getOperand(1)).getMaxValue(), overflows);
      return !overflows;
    case Instruction::Mul:
      (void)known(instruction.getOperand(0))
          .getMaxValue()
          .umul_ov(known(instruction.getOperand(1)).getMaxValue(), overflows);
      return !overflows;
    case Instruction::Shl: {
      auto* by = dyn_cast<ConstantInt>(instruction.getOperand(1));
      return by && known(instruction.getOperand(0)).countMinLeadingZeros() >= by->getLimitedValue(64);
    }
    default: return false;
  }
}

// Where a number of at most 32 bits lies that is a sum of uniform values and terms that differ between lanes, whichever
// lanes are active, as `row + 8 + k` in a loop from -8 to 8. Nothing if a signed result might wrap.
std::optional<Widener::Interval> Widener::exact_range(Value* value, unsigned depth) {
  if (!value->getType()->isIntegerTy() || value->getType()->getIntegerBitWidth() > 32 || depth > kRangeDepth)
    return std::nullopt;
  auto [known, is_new] = exact_ranges_.try_emplace(value);
  if (!is_new) return known->second;
  std::optional<Interval> range = computed_range(value, depth);
  const unsigned bits = value->getType()->getIntegerBitWidth();
  if (range && (range->least < minIntN(bits) || range->most > maxIntN(bits))) range = std::nullopt;
  return exact_ranges_[value] = range;
}

std::optional<Widener::Interval> Widener::computed_range(Value* value, unsigned depth) {
  if (!lanes_.is_divergent(value)) {
    // What a branch says about a uniform value holds wherever some lane is active.
    const ConstantRange range = evolution_.getSignedRange(evolution_.getSCEV(value));
    return Interval{range.getSignedMin().getSExtValue(), range.getSignedMax().getSExtValue()};
  }
  // Strides and patterns take lanes' values for unsigned numbers: negative ones may be far from their neighbours.
  if (auto values = values_of(value)) {
    if (any_of(*values, [](const APInt& one) { return one.isNegative(); })) return std::nullopt;
    auto less = [](const APInt& a, const APInt& b) { return a.ult(b); };
    return Interval{std::min_element(values->begin(), values->end(), less)->getSExtValue(),
                    std::max_element(values->begin(), values->end(), less)->getSExtValue()};
  }
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction) return std::nullopt;
  auto of = [&](unsigned i) { return exact_range(instruction->getOperand(i), depth + 1); };
  // Of 32 bits each, so that nothing overflows here.
  auto combined = [&](auto&& operation) -> std::optional<Interval> {
    std::optional<Interval> one = of(0), other = of(1);
    if (!one || !other) return std::nullopt;
    const auto results = {operation(one->least, other->least), operation(one->least, other->most),
                          operation(one->most, other->least), operation(one->most, other->most)};
    return Interval{std::min(results), std::max(results)};
  };
  switch (instruction->getOpcode()) {
    case Instruction::Or:
      if (!cast<PossiblyDisjointInst>(instruction)->isDisjoint()) return std::nullopt;
      [[fallthrough]];
    case Instruction::Add: return combined([](int64_t a, int64_t b) { return a + b; });
    case Instruction::Sub: return combined([](int64_t a, int64_t b) { return a - b; });
    case Instruction::Mul: return combined([](int64_t a, int64_t b) { return a * b; });
    case Instruction::Shl: {
      auto* by = dyn_cast<ConstantInt>(instruction->getOperand(1));
      std::optional<Interval> range = of(0);
      if (!by || by->getValue().uge(31) || !range) return std::nullopt;
      const int64_t factor = int64_t{1} << by->getZExtValue();
      return Interval{range->least * factor, range->most * factor};
    }
    case Instruction::ZExt: {
      std::optional<Interval> range = of(0);
      return range && range->least >= 0 ? range : std::nullopt;
    }
    case Instruction::SExt:
    case Instruction::Trunc: return of(0);
    default: return std::nullopt;
  }
}

// Whether the value follows its stride, whatever other values are: nothing in it can wrap.
bool Widener::never_wraps(Value* value) {
  if (!lanes_.is_divergent(value)) return true;
  if (auto values = values_of(value)) {
    // A narrow value may have wrapped, which its stride does not show. A pattern is made of the values themselves.
    std::optional<int64_t> stride = stride_of(value);
    for (unsigned lane = 0; stride && lane < kLanes; ++lane)
      if ((*values)[lane].getZExtValue() - (*values)[0].getZExtValue() != static_cast<uint64_t>(*stride) * lane)
        return false;
    return true;
  }
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || isa<PHINode>(instruction)) return false;
  if (isa<SExtInst, ZExtInst>(instruction))
    if (std::optional<Interval> range = exact_range(instruction->getOperand(0));
        range && (isa<SExtInst>(instruction) || range->least >= 0))
      return true;
  if (is_small_sum(*instruction))
    return all_of(instruction->operands(), [&](Use& use) { return never_wraps(use.get()); });
  switch (instruction->getOpcode()) {
    case Instruction::SExt:
      if (!has_uniform_sign(instruction->getOperand(0))) return false;
      break;
    case Instruction::Or:
    case Instruction::ZExt:
    case Instruction::PtrToInt:
    case Instruction::IntToPtr: break;
    default:
      if (!wraps_only_with_operands(*instruction)) return false;
  }
  return all_of(instruction->operands(), [&](Use& operand) { return never_wraps(operand.get()); });
}

// Whether the access is a masked vector access, whichever lanes are active.
bool Widener::is_masked_access(Value* pointer, uint64_t bytes) {
  return isa_.has_mask_registers && lanes_.can_mask(bytes) && element_stride(pointer, bytes) == 1 &&
         never_wraps(pointer);
}

// The lanes in which a number with a stride, such as an access's offset, is below a limit, such as an array's size:
// consecutive lanes, from the first that is not before the array. Null if that is unknown. Otherwise vectors of 64-bit
// numbers would have to be created and compared.
Value* Widener::lanes_below(CmpInst& comparison, IRBuilder<>& builder) {
  Value *number = comparison.getOperand(0), *limit = comparison.getOperand(1);
  if (comparison.getPredicate() != CmpInst::ICMP_ULT || !number->getType()->isIntegerTy(64) ||
      lanes_.is_divergent(limit))
    return nullptr;
  std::optional<int64_t> stride = stride_of(number);
  if (!stride || *stride <= 0 || !isPowerOf2_64(static_cast<uint64_t>(*stride)) || !never_wraps(number)) return nullptr;
  // So that the limit minus a negative number, within the lanes' reach, does not overflow.
  if (computeKnownBits(limit, layout_).countMinLeadingZeros() < 2) return nullptr;
  auto step = static_cast<uint64_t>(*stride);
  auto signed_number = [&](Intrinsic::ID which, Value* one, uint64_t other) {
    return builder.CreateBinaryIntrinsic(which, one, builder.getInt64(other));
  };
  // The number of lanes that begin within so many bytes.
  auto num_lanes_in = [&](Value* bytes) {
    bytes = signed_number(Intrinsic::smax, signed_number(Intrinsic::smin, bytes, kLanes * step), 0);
    return builder.CreateLShr(builder.CreateAdd(bytes, builder.getInt64(step - 1)), Log2_64(step));
  };
  Value* first = at_lane(number, 0, builder);
  Value* num_below = num_lanes_in(builder.CreateSub(lanes_.scalar(limit), first));
  Value* num_before =
      computeKnownBits(first, layout_).isNonNegative() ? nullptr : num_lanes_in(builder.CreateNeg(first));
  if (!isa_.has_mask_registers) {
    auto compare = [&](CmpInst::Predicate predicate, Value* lane) {
      Value* lanes = builder.CreateVectorSplat(kLanes, builder.CreateTrunc(lane, builder.getInt8Ty()));
      return builder.CreateICmp(predicate, lane_numbers(builder.getInt8Ty()), lanes);
    };
    Value* lanes = compare(CmpInst::ICMP_SLT, num_below);
    return num_before ? builder.CreateAnd(lanes, compare(CmpInst::ICMP_SGE, num_before)) : lanes;
  }
  Value* bits = builder.CreateSub(builder.CreateShl(builder.getInt64(1), num_below), builder.getInt64(1));
  if (num_before) bits = builder.CreateAnd(bits, builder.CreateShl(builder.getInt64(-1), num_before));
  return builder.CreateBitCast(builder.CreateTrunc(bits, builder.getInt32Ty()),
                               vector_of(Type::getInt1Ty(lanes_.context())));
}

}  // namespace kiln::widening
