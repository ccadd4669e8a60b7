#include "compiler/vectorize/widener_lane_scalars.h"

#include <llvm/Analysis/ValueTracking.h>

namespace kiln::widening {

Value* LaneScalars::at_lane(Value* value, unsigned lane, IRBuilder<>& builder) {
  if (!lanes_.is_divergent(value)) return lanes_.scalar(value);
  if (is_lane(value)) return ConstantInt::get(value->getType(), lane);
  if (auto* phi = dyn_cast<PHINode>(value)) {
    PHINode*& at = lane_phis_[{phi, lane}];
    if (!at) {
      at = PHINode::Create(phi->getType(), 2, phi->getName(), blocks_.begin(phi->getParent())->begin());
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

bool LaneScalars::can_be_computed_at_lane(Value* value) const {
  if (!lanes_.is_divergent(value) || is_lane(value)) return true;
  auto* instruction = dyn_cast<Instruction>(value);
  return instruction && !isa<PHINode>(instruction) &&
         all_of(instruction->operands(), [&](Use& operand) { return can_be_computed_at_lane(operand.get()); });
}

bool LaneScalars::is_cheap_at_lane(Value* value, unsigned& left) const {
  if (!lanes_.is_divergent(value) || is_lane(value)) return true;
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || left == 0 ||
      !isa<BinaryOperator, CastInst, CmpInst, SelectInst, GetElementPtrInst>(instruction) ||
      !isSafeToSpeculativelyExecute(instruction))
    return false;
  --left;
  return all_of(instruction->operands(), [&](Use& operand) { return is_cheap_at_lane(operand.get(), left); });
}

Value* LaneScalars::at_active_lane(Value* value, Value* lane, IRBuilder<>& builder) {
  if (!lanes_.is_divergent(value)) return lanes_.scalar(value);
  if (is_lane(value)) return builder.CreateZExtOrTrunc(lane, value->getType());
  auto* instruction = cast<Instruction>(value);
  SmallVector<Value*> operands;
  for (Value* operand : instruction->operands()) operands.push_back(at_active_lane(operand, lane, builder));
  Instruction* one = with_operands(*instruction, operands);
  one->dropPoisonGeneratingFlags();  // no lane may be active
  return builder.Insert(one);
}

void LaneScalars::complete_phis() {
  while (!new_lane_phis_.empty()) {
    auto [phi, lane] = new_lane_phis_.pop_back_val();
    PHINode* at = lane_phis_[{phi, lane}];
    for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
      BasicBlock* pred = blocks_.end(phi->getIncomingBlock(i));
      IRBuilder<> builder(pred->getTerminator());
      at->addIncoming(at_lane(phi->getIncomingValue(i), lane, builder), pred);
    }
  }
}

// The value in a lane of a simdgroup that fulfils the piece's condition.
Value* LaneScalars::at_lane_of_piece(Instruction& instruction, const Piece& piece, unsigned lane,
                                     IRBuilder<>& builder) {
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

Value* LaneScalars::remainder_of(Instruction& instruction, Value* number, IRBuilder<>& builder) {
  Value* divisor = lanes_.scalar(instruction.getOperand(1));
  return is_remainder(instruction) ? builder.CreateURem(number, divisor) : builder.CreateAnd(number, divisor);
}

}  // namespace kiln::widening
