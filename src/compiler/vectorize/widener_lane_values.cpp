#include "compiler/vectorize/widener_lane_values.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Support/KnownBits.h>

namespace kiln::widening {

std::optional<std::array<APInt, kLanes>> values_of(Value* value, unsigned depth) {
  if (!value->getType()->isIntegerTy() || depth > 6) return std::nullopt;
  unsigned bits = value->getType()->getIntegerBitWidth();
  std::array<APInt, kLanes> values;
  if (is_lane(value)) {
    for (unsigned lane = 0; lane < kLanes; ++lane) values[lane] = APInt(bits, lane);
    return values;
  }
  if (auto* constant = dyn_cast<ConstantInt>(value)) {
    values.fill(constant->getValue());
    return values;
  }
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || !isa<BinaryOperator, CastInst>(instruction)) return std::nullopt;
  auto first = values_of(instruction->getOperand(0), depth + 1);
  if (!first) return std::nullopt;
  if (isa<CastInst>(instruction)) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const APInt& from = (*first)[lane];
      switch (instruction->getOpcode()) {
        case Instruction::ZExt: values[lane] = from.zext(bits); break;
        case Instruction::SExt: values[lane] = from.sext(bits); break;
        case Instruction::Trunc: values[lane] = from.trunc(bits); break;
        default: return std::nullopt;
      }
    }
    return values;
  }
  auto second = values_of(instruction->getOperand(1), depth + 1);
  if (!second) return std::nullopt;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const APInt &left = (*first)[lane], &right = (*second)[lane];
    bool is_shift = right.ult(bits);
    switch (instruction->getOpcode()) {
      case Instruction::Add: values[lane] = left + right; break;
      case Instruction::Sub: values[lane] = left - right; break;
      case Instruction::Mul: values[lane] = left * right; break;
      case Instruction::And: values[lane] = left & right; break;
      case Instruction::Or:
        // As in at_lane(): a sum, for active lanes.
        values[lane] = cast<PossiblyDisjointInst>(instruction)->isDisjoint() ? left + right : left | right;
        break;
      case Instruction::Xor: values[lane] = left ^ right; break;
      case Instruction::Shl:
        if (!is_shift) return std::nullopt;
        values[lane] = left.shl(right);
        break;
      case Instruction::LShr:
        if (!is_shift) return std::nullopt;
        values[lane] = left.lshr(right);
        break;
      case Instruction::AShr:
        if (!is_shift) return std::nullopt;
        values[lane] = left.ashr(right);
        break;
      default: return std::nullopt;
    }
  }
  return values;
}

std::optional<std::array<APInt, kLanes>> lane_bits(Value* value, const StructuredFlow& flow, const DataLayout& layout,
                                                   unsigned depth) {
  if (auto values = values_of(value, depth)) return values;
  if (!value->getType()->isIntegerTy() || depth > 6) return std::nullopt;
  if (!flow.is_divergent(value)) {
    std::array<APInt, kLanes> none;
    none.fill(APInt(value->getType()->getIntegerBitWidth(), 0));
    return none;
  }
  auto* operation = dyn_cast<BinaryOperator>(value);
  if (!operation) return std::nullopt;
  auto bits = lane_bits(operation->getOperand(0), flow, layout, depth + 1);
  if (!bits) return std::nullopt;
  if (operation->getOpcode() == Instruction::Or) {
    auto others = lane_bits(operation->getOperand(1), flow, layout, depth + 1);
    if (!others || !cast<PossiblyDisjointInst>(operation)->isDisjoint()) return std::nullopt;
    // `disjoint` may hold only for lanes that take a branch: in other lanes the sum that at_lane() computes would
    // carry.
    auto may_collide = [&](const std::array<APInt, kLanes>& from_lane, Value* other) {
      KnownBits known = computeKnownBits(other, layout, /*Depth=*/0, /*AC=*/nullptr, /*CxtI=*/nullptr, /*DT=*/nullptr,
                                         /*UseInstrInfo=*/false);
      return any_of(from_lane, [&](const APInt& lane) { return !lane.isSubsetOf(known.Zero); });
    };
    if (may_collide(*bits, operation->getOperand(1)) || may_collide(*others, operation->getOperand(0)))
      return std::nullopt;
    for (unsigned lane = 0; lane < kLanes; ++lane) (*bits)[lane] |= (*others)[lane];
    return bits;
  }
  auto* constant = dyn_cast<ConstantInt>(operation->getOperand(1));
  if (!constant) return std::nullopt;
  const APInt& by = constant->getValue();
  bool is_shift = by.ult(by.getBitWidth());
  for (APInt& lane : *bits) {
    switch (operation->getOpcode()) {
      case Instruction::And: lane &= by; break;
      case Instruction::Shl:
        if (!is_shift) return std::nullopt;
        lane <<= by;
        break;
      case Instruction::LShr:
        if (!is_shift) return std::nullopt;
        lane.lshrInPlace(by);
        break;
      default: return std::nullopt;
    }
  }
  return bits;
}

bool is_modular(Value* value, const StructuredFlow& flow, const DataLayout& layout) {
  if (!flow.is_divergent(value) || is_lane(value) || values_of(value) || lane_bits(value, flow, layout)) return true;
  auto* operation = dyn_cast<BinaryOperator>(value);
  if (!operation) return false;
  switch (operation->getOpcode()) {
    case Instruction::Or:
      if (!cast<PossiblyDisjointInst>(operation)->isDisjoint()) return false;
      break;
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Mul:
    case Instruction::Shl: break;
    default: return false;
  }
  return all_of(operation->operands(), [&](Use& operand) { return is_modular(operand.get(), flow, layout); });
}

}  // namespace kiln::widening
