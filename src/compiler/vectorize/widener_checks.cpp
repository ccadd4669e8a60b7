#include "compiler/vectorize/widener_checks.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Support/KnownBits.h>

namespace kiln::widening {

ActiveLanes AddressChecks::active_lanes(IRBuilder<>& builder) {
  Value* bits = lanes_.mask_bits(builder);
  Value* first = builder.CreateBinaryIntrinsic(Intrinsic::cttz, bits, builder.getFalse());
  Value* leading_zeros = builder.CreateBinaryIntrinsic(Intrinsic::ctlz, bits, builder.getFalse());
  return {first, builder.CreateSub(builder.getInt32(kLanes - 1), leading_zeros)};
}

Value* AddressChecks::check_stride(Value* value, IRBuilder<>& builder) {
  CheckedPieces checked;
  return check_stride(value, checked, builder);
}

Value* AddressChecks::check_stride(Value* value, CheckedPieces& checked, IRBuilder<>& builder) {
  Value* pieces = check_pieces(value, checked, builder);
  return builder.CreateAnd(pieces, check_wrapping(value, builder));
}

// The value's pieces hold.
Value* AddressChecks::check_wrapping(Value* value, IRBuilder<>& builder) {
  if (wrapping_.never_wraps_with_pieces(value)) return builder.getTrue();
  auto* instruction = cast<Instruction>(value);
  if (wraps_only_with_operands(*instruction))
    for (Value* operand : instruction->operands())
      // A narrower array index would be extended.
      if (lanes_.is_divergent(operand) && lanes_.layout().getTypeSizeInBits(operand->getType()) == 64)
        return check_wrapping(operand, builder);
  Type* number = builder.getInt64Ty();
  auto at = [&](unsigned lane) {
    Value* one = lane_scalars_.at_lane(value, lane, builder);
    return one->getType()->isPointerTy() ? builder.CreatePtrToInt(one, number) : builder.CreateZExt(one, number);
  };
  if (std::optional<int64_t> stride = strides_.stride_of(value))
    return builder.CreateICmpEQ(builder.CreateSub(at(kLanes - 1), at(0)),
                                builder.getInt64(static_cast<uint64_t>(*stride) * (kLanes - 1)));
  std::optional<Pattern> pattern = patterns_.pattern_of(value);
  return builder.CreateICmpEQ(builder.CreateSub(at(pattern->highest), at(pattern->lowest)),
                              builder.getInt64(pattern->offsets[pattern->highest]));
}

Value* AddressChecks::check_bounds(Value* offset, Value* limit, unsigned lowest, uint64_t reach, IRBuilder<>& builder) {
  CheckedPieces checked;
  return check_bounds(offset, limit, lowest, reach, checked, builder);
}

Value* AddressChecks::check_bounds(Value* offset, Value* limit, unsigned lowest, uint64_t reach, CheckedPieces& checked,
                                   IRBuilder<>& builder) {
  Value *first = lane_scalars_.at_lane(offset, lowest, builder), *end = lanes_.scalar(limit);
  if (std::optional<uint64_t> extended = lowest == 0 ? wrapping_.end_of_extension(offset) : std::nullopt;
      extended && reach >= static_cast<uint64_t>(*strides_.stride_of(offset)) * (kLanes - 1))
    return builder.CreateAnd(builder.CreateICmpULT(first, reduced_limit(end, reach, extended)),
                             check_pieces(offset, checked, builder));
  return builder.CreateAnd(builder.CreateICmpULT(first, reduced_limit(end, reach)),
                           check_stride(offset, checked, builder));
}

bool AddressChecks::is_masked_access(Value* pointer, uint64_t bytes) {
  return isa_.has_mask_registers && lanes_.can_mask(bytes) && strides_.element_stride(pointer, bytes) == 1 &&
         wrapping_.never_wraps(pointer);
}

Value* AddressChecks::first_of_consecutive(Value* number, IRBuilder<>& builder) {
  const bool are_consecutive = strides_.stride_of(number) == 1 && !strides_.has_piece(number) &&
                               wrapping_.never_wraps(number) && lane_scalars_.can_be_computed_at_lane(number);
  return are_consecutive ? lane_scalars_.at_lane(number, 0, builder) : nullptr;
}

// The lanes from `before` on, or from the first one, that are below `below`. Both are at most kLanes.
Value* AddressChecks::lanes_between(Value* before, Value* below, IRBuilder<>& builder) {
  if (!isa_.has_mask_registers) {
    auto compare = [&](CmpInst::Predicate predicate, Value* lane) {
      Value* lanes = builder.CreateVectorSplat(kLanes, builder.CreateTrunc(lane, builder.getInt8Ty()));
      return builder.CreateICmp(predicate, lane_numbers(builder.getInt8Ty()), lanes);
    };
    Value* lanes = compare(CmpInst::ICMP_SLT, below);
    return before ? builder.CreateAnd(lanes, compare(CmpInst::ICMP_SGE, before)) : lanes;
  }
  Value* bits = builder.CreateSub(builder.CreateShl(builder.getInt64(1), below), builder.getInt64(1));
  if (before) bits = builder.CreateAnd(bits, builder.CreateShl(builder.getInt64(-1), before));
  return builder.CreateBitCast(builder.CreateTrunc(bits, builder.getInt32Ty()),
                               vector_of(Type::getInt1Ty(lanes_.context())));
}

// The same of consecutive numbers of 32 bits, which may wrap, without mask registers: a comparison of 32 bits for each
// lane takes four registers, whose results are packed where bytes or branches need them.
Value* AddressChecks::narrow_lanes_below(CmpInst& comparison, IRBuilder<>& builder) {
  Value *number = comparison.getOperand(0), *limit = comparison.getOperand(1);
  if (isa_.has_mask_registers || !number->getType()->isIntegerTy(32) || comparison.isEquality() ||
      lanes_.is_divergent(limit) || strides_.stride_of(number) != 1 || strides_.has_piece(number) ||
      !wrapping_.wraps_as_a_whole(number) || !lane_scalars_.can_be_computed_at_lane(number))
    return nullptr;
  const CmpInst::Predicate predicate = comparison.getPredicate();
  const bool is_signed = comparison.isSigned(), is_greater = ICmpInst::isGT(predicate) || ICmpInst::isGE(predicate),
             is_next = ICmpInst::isLE(predicate) || ICmpInst::isGT(predicate);
  // Numbers with a sign are compared without one after the sign bit is inverted. The limit is then so small that
  // numbers behind the largest one, where they begin again with 0, do not reach it in the same vector.
  const KnownBits known = computeKnownBits(limit, lanes_.layout());
  const APInt sign = is_signed ? APInt::getSignMask(32) : APInt(32, 0);
  const bool has_known_sign = !is_signed || known.isNonNegative() || known.isNegative();
  if (!has_known_sign || (known.getMaxValue() ^ sign).ugt(~uint32_t{0} - 2 * kLanes)) return nullptr;
  Value *end = lanes_.scalar(limit), *first = lane_scalars_.at_lane(number, 0, builder);
  if (is_signed) {
    end = builder.CreateXor(end, sign);
    first = builder.CreateXor(first, sign);
  }
  if (is_next) end = builder.CreateAdd(end, builder.getInt32(1));
  auto at_most_all = [&](Value* lanes) {
    return builder.CreateBinaryIntrinsic(Intrinsic::umin, lanes, builder.getInt32(kLanes));
  };
  Value *num_before = nullptr, *num_below = at_most_all(builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, end, first));
  if (!computeKnownBits(first, lanes_.layout()).isNonNegative()) {
    // From the lane on where numbers begin again with 0.
    Value* is_below = builder.CreateICmpULT(first, end);
    num_before = builder.CreateSelect(is_below, builder.getInt32(0), at_most_all(builder.CreateNeg(first)));
    num_below = builder.CreateSelect(is_below, num_below, at_most_all(builder.CreateAdd(num_before, end)));
  }
  Value* lanes = lanes_between(num_before, num_below, builder);
  return is_greater ? builder.CreateNot(lanes) : lanes;
}

Value* AddressChecks::lanes_below(CmpInst& comparison, IRBuilder<>& builder) {
  if (Value* lanes = narrow_lanes_below(comparison, builder)) return lanes;
  Value *number = comparison.getOperand(0), *limit = comparison.getOperand(1);
  if (comparison.getPredicate() != CmpInst::ICMP_ULT || !number->getType()->isIntegerTy(64) ||
      lanes_.is_divergent(limit))
    return nullptr;
  std::optional<int64_t> stride = strides_.stride_of(number);
  if (!stride || *stride <= 0 || !isPowerOf2_64(static_cast<uint64_t>(*stride)) || !wrapping_.never_wraps(number))
    return nullptr;
  // So that the limit minus a negative number, within the lanes' reach, does not overflow.
  if (computeKnownBits(limit, lanes_.layout()).countMinLeadingZeros() < 2) return nullptr;
  auto step = static_cast<uint64_t>(*stride);
  auto signed_number = [&](Intrinsic::ID which, Value* one, uint64_t other) {
    return builder.CreateBinaryIntrinsic(which, one, builder.getInt64(other));
  };
  // The number of lanes that begin within so many bytes.
  auto num_lanes_in = [&](Value* bytes) {
    bytes = signed_number(Intrinsic::smax, signed_number(Intrinsic::smin, bytes, kLanes * step), 0);
    return builder.CreateLShr(builder.CreateAdd(bytes, builder.getInt64(step - 1)), Log2_64(step));
  };
  Value* first = lane_scalars_.at_lane(number, 0, builder);
  Value* num_below = num_lanes_in(builder.CreateSub(lanes_.scalar(limit), first));
  Value* num_before =
      computeKnownBits(first, lanes_.layout()).isNonNegative() ? nullptr : num_lanes_in(builder.CreateNeg(first));
  return lanes_between(num_before, num_below, builder);
}

// Whether no narrow index wraps between the two accesses in any lane. If it does in one, it does in those behind it,
// too, since the addresses ascend.
Value* AddressChecks::check_distance(Value* lowest, Value* other, uint64_t distance, IRBuilder<>& builder) {
  auto at = [&](Value* address, unsigned lane) {
    return builder.CreatePtrToInt(lane_scalars_.at_lane(address, lane, builder), builder.getInt64Ty());
  };
  const uint64_t of_lanes = static_cast<uint64_t>(*strides_.stride_of(lowest)) * (kLanes - 1);
  return builder.CreateICmpEQ(builder.CreateSub(at(other, kLanes - 1), at(lowest, 0)),
                              builder.getInt64(of_lanes + distance));
}

// Whether all lanes are on the sides of the pieces in the value.
Value* AddressChecks::check_pieces(Value* value, CheckedPieces& checked, IRBuilder<>& builder) {
  Value* all = builder.getTrue();
  for (Instruction* piece : strides_.pieces_in(value))
    all = builder.CreateAnd(all, check_piece(*piece, checked, builder));
  return all;
}

// Whether all lanes are on the piece's side.
Value* AddressChecks::check_piece(Instruction& instruction, CheckedPieces& checked, IRBuilder<>& builder) {
  if (auto found = checked.find(&instruction); found != checked.end()) return found->second;
  const Piece piece = *strides_.piece_of(instruction);
  Value* all = builder.getTrue();
  auto require = [&](Value* what) { all = builder.CreateAnd(all, what); };
  // From the first lane to the last numbers do not wrap, as numbers with a sign or without.
  auto ends_of = [&](Value* number, bool is_signed) {
    require(check_stride(number, checked, builder));
    Value *first = lane_scalars_.at_lane(number, 0, builder),
          *last = lane_scalars_.at_lane(number, kLanes - 1, builder);
    // Narrow unsigned numbers that follow their stride ascend. Those of 64 bits follow it modulo 2^64, and extended
    // ones may have been negative.
    if (is_signed || number->getType()->isIntegerTy(64) || isa<SExtInst>(number))
      require(builder.CreateICmp(is_signed ? CmpInst::ICMP_SLE : CmpInst::ICMP_ULE, first, last));
    return std::pair(first, last);
  };
  for (const LaneComparison& comparison : piece.comparisons) {
    Value* limit = lanes_.scalar(comparison.limit);
    auto [first, last] = ends_of(comparison.number, CmpInst::isSigned(comparison.predicate));
    if (CmpInst::isEquality(comparison.predicate)) {
      require(builder.CreateICmpUGT(builder.CreateSub(limit, first), builder.CreateSub(last, first)));
      continue;
    }
    auto compare = [&](Value* number) { return builder.CreateICmp(comparison.predicate, number, limit); };
    if (!comparison.value) {
      require(builder.CreateICmpEQ(compare(first), compare(last)));
      continue;
    }
    // Numbers ascend from the first lane to the last, so one of the two decides.
    const bool are_below = ICmpInst::isLT(comparison.predicate) || ICmpInst::isLE(comparison.predicate);
    Value* decisive = compare(are_below == *comparison.value ? last : first);
    require(*comparison.value ? decisive : builder.CreateNot(decisive));
  }
  if (piece.dividend) {
    auto [first, last] = ends_of(piece.dividend, /*is_signed=*/false);
    Value* divisor = lanes_.scalar(instruction.getOperand(1));
    if (instruction.getOpcode() == Instruction::SRem) {
      // The last number is not below the first.
      Value* zero = ConstantInt::get(divisor->getType(), 0);
      require(builder.CreateICmpSGE(last, zero));
      require(builder.CreateICmpSGT(divisor, zero));
    }
    Value* remainder = lane_scalars_.remainder_of(instruction, first, builder);
    Value* largest =
        is_remainder(instruction) ? builder.CreateSub(divisor, ConstantInt::get(divisor->getType(), 1)) : divisor;
    require(builder.CreateICmpULE(remainder, largest));
    require(builder.CreateICmpULE(builder.CreateSub(last, first), builder.CreateSub(largest, remainder)));
  }
  return checked[&instruction] = all;
}

Value* AddressChecks::reduced_limit(Value* limit, uint64_t reach, std::optional<uint64_t> end) {
  auto* known = dyn_cast<Instruction>(limit);
  Value*& made = reduced_limits_[{limit, reach, end}];
  if (made) return made;
  IRBuilder<> builder(known ? known->getParent() : &lanes_.entry());
  if (known && isa<PHINode>(known))
    builder.SetInsertPoint(known->getParent(), known->getParent()->getFirstInsertionPt());
  else if (known)
    builder.SetInsertPoint(known->getParent(), std::next(known->getIterator()));
  if (end) limit = builder.CreateBinaryIntrinsic(Intrinsic::umin, limit, builder.getInt64(*end));
  return made = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, limit, builder.getInt64(reach));
}

bool AddressChecks::has_range_guard(const GuardedAddress& target, uint64_t bytes) {
  auto* comparison = target.allowed ? dyn_cast<ICmpInst>(target.allowed) : nullptr;
  if (!comparison || comparison->getPredicate() != ICmpInst::ICMP_ULT) return false;
  Value *offset = comparison->getOperand(0), *limit = comparison->getOperand(1);
  return offset->getType()->isIntegerTy(64) && !lanes_.is_divergent(limit) &&
         strides_.element_stride(target.address, bytes) == 1 && wrapping_.never_wraps(target.address) &&
         strides_.stride_of(offset) == static_cast<int64_t>(bytes) && wrapping_.never_wraps(offset) &&
         computeKnownBits(limit, lanes_.layout()).countMinLeadingZeros() >= 2;
}

Value* AddressChecks::check_ends(const ActiveLanes& active, const BoundedAddress& target, Value* reach,
                                 IRBuilder<>& builder) {
  auto number_at = [&](Value* lane) {
    Value* one = lane_scalars_.at_active_lane(target.offset ? target.offset : target.address, lane, builder);
    return one->getType()->isPointerTy() ? builder.CreatePtrToInt(one, builder.getInt64Ty()) : one;
  };
  Value *first = number_at(active.first), *last = number_at(active.last);
  Value* condition = builder.CreateICmpEQ(builder.CreateSub(last, first), reach);
  for (Value* end : {first, last})
    if (target.offset)
      condition = builder.CreateAnd(condition, builder.CreateICmpULT(end, lanes_.scalar(target.limit)));
  if (target.allowed && !target.offset) condition = builder.CreateAnd(condition, lanes_.scalar(target.allowed));
  return condition;
}

std::optional<RangeCheck> AddressChecks::check_range(Value* pointer, Value* allowed, const AccessShape& shape,
                                                     IRBuilder<>& builder) {
  Value *offset = nullptr, *limit = nullptr;
  if (allowed && lanes_.is_divergent(allowed)) {
    std::optional<LaneGuard> guard = lane_guard_of(allowed, flow_);
    if (!guard || !patterns_.have_equal_strides(guard->offset, pointer)) return std::nullopt;
    offset = guard->offset;
    limit = guard->limit;
  }
  // More than the lanes' own elements may be read only if it is known to be there.
  if (!offset && !shape.is_exact) return std::nullopt;
  // If the first lanes would read before the array, they are inactive: the check then covers active lanes only.
  bool is_active_only = shape.is_exact && shape.lowest == 0 && !is_all(lanes_.mask()) && is_word(shape.bytes) &&
                        strides_.element_stride(pointer, shape.bytes) == 1 && strides_.has_negative_offset(pointer) &&
                        !strides_.has_piece(pointer) && lane_scalars_.can_be_computed_at_lane(pointer) &&
                        (!offset || lane_scalars_.can_be_computed_at_lane(offset));
  Value *base, *condition;
  if (is_active_only) {
    ActiveLanes active = active_lanes(builder);
    auto bytes_of = [&](Value* lanes) {
      return builder.CreateMul(builder.CreateZExt(lanes, builder.getInt64Ty()), builder.getInt64(shape.bytes));
    };
    condition = check_ends(active, {pointer, allowed, offset, limit},
                           bytes_of(builder.CreateSub(active.last, active.first)), builder);
    base = lane_scalars_.at_active_lane(pointer, active.first, builder);
    base = builder.CreateGEP(builder.getInt8Ty(), base, builder.CreateNeg(bytes_of(active.first)));
  } else if (base = lane_scalars_.at_lane(pointer, shape.lowest, builder); offset) {
    // The address and its offset in the array have the same stride.
    CheckedPieces checked;
    condition = check_bounds(offset, limit, shape.lowest, shape.reach, checked, builder);
    condition = builder.CreateAnd(condition, check_pieces(pointer, checked, builder));
  } else {
    condition = check_stride(pointer, builder);
    for (const auto& [other, distance] : shape.others)
      condition = builder.CreateAnd(condition, check_distance(pointer, other, distance, builder));
    if (allowed) condition = builder.CreateAnd(condition, lanes_.scalar(allowed));
  }
  if (shape.needs_full_mask ? !offset && !is_all(lanes_.mask()) : !lanes_.can_mask(shape.bytes))
    condition = builder.CreateAnd(condition, shape.needs_full_mask ? check_inactive_lanes(pointer, base, shape, builder)
                                                                   : lanes_.all_active(builder));
  return RangeCheck{condition, base, offset, limit, is_active_only};
}

// Whether memory is there that no guard allows and that inactive lanes would access.
Value* AddressChecks::check_inactive_lanes(Value* pointer, Value* base, const AccessShape& shape,
                                           IRBuilder<>& builder) {
  if (const std::optional<ArgumentRange> argument = argument_bounds_.range_of(pointer)) {
    Value* offset = builder.CreateSub(builder.CreatePtrToInt(base, builder.getInt64Ty()), argument->begin);
    return builder.CreateICmpULT(offset, reduced_limit(argument->bytes, shape.reach + shape.bytes - 1));
  }
  // Of lanes with a stride all that is accessed is between an element of the first lane and one of the last.
  if (!strides_.stride_of(pointer)) return lanes_.all_active(builder);
  Value* ends = builder.getInt32(uint32_t{1} | uint32_t{1} << (kLanes - 1));
  return builder.CreateICmpEQ(builder.CreateAnd(lanes_.mask_bits(builder), ends), ends);
}

Value* AddressChecks::is_outside(const RangeCheck& check, const AccessShape& shape, IRBuilder<>& builder) {
  if (!check.offset || check.is_active_only) return nullptr;
  Value* lowest = lane_scalars_.at_lane(check.offset, shape.lowest, builder);
  Value* all_outside = builder.CreateAnd(builder.CreateICmpUGE(lowest, lanes_.scalar(check.limit)),
                                         builder.CreateICmpULE(lowest, builder.getInt64(~shape.reach)));
  return builder.CreateAnd(check_stride(check.offset, builder), all_outside);
}

Values AddressChecks::emit_by_shape(Value* pointer, Value* allowed, const AccessShape& shape, IRBuilder<>& builder,
                                    EmitterAt vectorized, Emitter scalarized) {
  std::optional<RangeCheck> check = check_range(pointer, allowed, shape, builder);
  if (!check) return scalarized();
  if (auto* known = dyn_cast<ConstantInt>(check->condition); known && known->isOne()) return vectorized(check->base);
  Values results;
  auto fast_path = [&] { return results = vectorized(check->base); };
  auto zeros = [&] {
    Values zeros;
    for (Value* result : results) zeros.push_back(Constant::getNullValue(result->getType()));
    return zeros;
  };
  auto slow_path = [&] {
    bool slow_path_checks = shape.slow_path_checks || is_masked_access(pointer, shape.bytes);
    Value* all_outside = slow_path_checks ? nullptr : is_outside(*check, shape, builder);
    return all_outside ? lanes_.create_if_else({all_outside, "none", "some", false}, builder, zeros, scalarized)
                       : scalarized();
  };
  return lanes_.create_if_else({check->condition, "row", "lanes"}, builder, fast_path, slow_path);
}

}  // namespace kiln::widening
