#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/Support/KnownBits.h>

#include "compiler/ir/simdgroup.h"
#include "compiler/vectorize/widener.h"

namespace kiln::widening {

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
  if (std::optional<Piece> piece = strides_.piece_of(*instruction))
    return at_lane_of_piece(*instruction, *piece, lane, builder);
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
  if (wrapping_.never_wraps(value)) return builder.getTrue();
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
  if (std::optional<int64_t> stride = strides_.stride_of(value))
    return builder.CreateICmpEQ(builder.CreateSub(at(kLanes - 1), at(0)),
                                builder.getInt64(static_cast<uint64_t>(*stride) * (kLanes - 1)));
  std::optional<Pattern> pattern = patterns_.pattern_of(value);
  return builder.CreateICmpEQ(builder.CreateSub(at(pattern->highest), at(pattern->lowest)),
                              builder.getInt64(pattern->offsets[pattern->highest]));
}

// A check that the lanes' offsets are below the limit, to the end of the reach, and follow their stride.
Value* Widener::check_bounds(Value* offset, Value* limit, unsigned lowest, uint64_t reach, CheckedPieces& checked,
                             IRBuilder<>& builder) {
  Value *first = at_lane(offset, lowest, builder), *end = lanes_.scalar(limit);
  if (std::optional<uint64_t> extended = lowest == 0 ? wrapping_.end_of_extension(offset) : std::nullopt;
      extended && reach >= static_cast<uint64_t>(*strides_.stride_of(offset)) * (kLanes - 1))
    return builder.CreateAnd(builder.CreateICmpULT(first, reduced_limit(end, reach, extended)),
                             check_pieces(offset, checked, builder));
  return builder.CreateAnd(builder.CreateICmpULT(first, reduced_limit(end, reach)),
                           check_stride(offset, checked, builder));
}

// Whether the access is a masked vector access, whichever lanes are active.
bool Widener::is_masked_access(Value* pointer, uint64_t bytes) {
  return isa_.has_mask_registers && lanes_.can_mask(bytes) && strides_.element_stride(pointer, bytes) == 1 &&
         wrapping_.never_wraps(pointer);
}

// The lanes in which a number with a stride, such as an access's offset, is below a limit, such as an array's size:
// consecutive lanes, from the first that is not before the array. Null if that is unknown. Otherwise vectors of 64-bit
// numbers would have to be created and compared.
Value* Widener::lanes_below(CmpInst& comparison, IRBuilder<>& builder) {
  Value *number = comparison.getOperand(0), *limit = comparison.getOperand(1);
  if (comparison.getPredicate() != CmpInst::ICMP_ULT || !number->getType()->isIntegerTy(64) ||
      lanes_.is_divergent(limit))
    return nullptr;
  std::optional<int64_t> stride = strides_.stride_of(number);
  if (!stride || *stride <= 0 || !isPowerOf2_64(static_cast<uint64_t>(*stride)) || !wrapping_.never_wraps(number))
    return nullptr;
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
