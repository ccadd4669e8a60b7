#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/PatternMatch.h>

#include "compiler/vectorize/widener.h"

namespace kiln::widening {

using namespace PatternMatch;

// The value in a lane of a simdgroup that fulfils the piece's condition.
Value* Widener::at_lane_of_piece(Instruction& instruction, const Piece& piece, unsigned lane, IRBuilder<>& builder) {
  if (piece.dividend) {
    Value *number = at_lane(piece.dividend, lane, builder), *first = at_lane(piece.dividend, 0, builder);
    return builder.CreateAdd(remainder_of(instruction, first, builder), builder.CreateSub(number, first));
  }
  if (piece.side) {
    Value* one = at_lane(piece.side, lane, builder);
    return piece.subtracted ? builder.CreateSub(one, lanes_.scalar(piece.subtracted)) : one;
  }
  // All lanes are on the side of the first.
  Value* condition = at_lane(instruction.getOperand(0), 0, builder);
  if (!isa<SelectInst>(instruction))
    return builder.CreateCast(cast<CastInst>(instruction).getOpcode(), condition, instruction.getType());
  return builder.CreateSelect(condition, at_lane(instruction.getOperand(1), lane, builder),
                              at_lane(instruction.getOperand(2), lane, builder));
}

// As unsigned numbers: the piece's condition requires that neither is negative.
Value* Widener::remainder_of(Instruction& instruction, Value* number, IRBuilder<>& builder) {
  Value* divisor = lanes_.scalar(instruction.getOperand(1));
  return is_remainder(instruction) ? builder.CreateURem(number, divisor) : builder.CreateAnd(number, divisor);
}

// Whether all lanes are on the sides of the pieces in the value.
Value* Widener::check_pieces(Value* value, CheckedPieces& checked, IRBuilder<>& builder) {
  Value* all = builder.getTrue();
  for (Instruction* piece : strides_.pieces_in(value))
    all = builder.CreateAnd(all, check_piece(*piece, checked, builder));
  return all;
}

// Whether all lanes are on the piece's side.
Value* Widener::check_piece(Instruction& instruction, CheckedPieces& checked, IRBuilder<>& builder) {
  if (auto found = checked.find(&instruction); found != checked.end()) return found->second;
  const Piece piece = *strides_.piece_of(instruction);
  Value* all = builder.getTrue();
  auto require = [&](Value* what) { all = builder.CreateAnd(all, what); };
  // From the first lane to the last numbers do not wrap, as numbers with a sign or without.
  auto ends_of = [&](Value* number, bool is_signed) {
    require(check_stride(number, checked, builder));
    Value *first = at_lane(number, 0, builder), *last = at_lane(number, kLanes - 1, builder);
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
    Value* at_first = builder.CreateICmp(comparison.predicate, first, limit);
    Value* at_last = builder.CreateICmp(comparison.predicate, last, limit);
    if (comparison.value) {
      require(*comparison.value ? at_first : builder.CreateNot(at_first));
      require(*comparison.value ? at_last : builder.CreateNot(at_last));
    } else {
      require(builder.CreateICmpEQ(at_first, at_last));
    }
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
    Value* remainder = remainder_of(instruction, first, builder);
    Value* largest =
        is_remainder(instruction) ? builder.CreateSub(divisor, ConstantInt::get(divisor->getType(), 1)) : divisor;
    require(builder.CreateICmpULE(remainder, largest));
    require(builder.CreateICmpULE(builder.CreateSub(last, first), builder.CreateSub(largest, remainder)));
  }
  return checked[&instruction] = all;
}

// Loads at a border, for elements that are not gathered: the lanes that are on the side of the pieces with one masked
// load, the others one by one. Which these are the addresses tell.
void Widener::load_beside_border(LoadInst& load, IRBuilder<>& builder) {
  auto [allowed, address] = guarded_address_of(load);
  const uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  Type *number = builder.getInt64Ty(), *type = vector_of(load.getType());
  SmallVector<Constant*> steps;
  for (unsigned lane = 0; lane < kLanes; ++lane) steps.push_back(builder.getInt64(lane * bytes));
  Value* first = at_lane(address, 0, builder);
  Value* expected = builder.CreateAdd(builder.CreateVectorSplat(kLanes, builder.CreatePtrToInt(first, number)),
                                      ConstantVector::get(steps));
  Value* in_line =
      builder.CreateICmpEQ(builder.CreatePtrToInt(lanes_.vector(address, builder), vector_of(number)), expected);
  Value* all = lanes_.mask();
  Value* mask = lanes_.narrowed(all, in_line, builder);
  if (allowed) mask = lanes_.narrowed(mask, lanes_.vector(allowed, builder), builder);
  Value* loaded = builder.CreateMaskedLoad(type, first, load.getAlign(), mask, Constant::getNullValue(type));
  lanes_.set_mask(lanes_.narrowed(all, builder.CreateNot(in_line), builder));
  for_each_lane(load, builder);
  lanes_.set_mask(all);
  lanes_.set_vector(&load, builder.CreateSelect(in_line, loaded, lanes_.known_vector(&load)));
}

}  // namespace kiln::widening
