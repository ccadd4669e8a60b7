#include "compiler/vectorize/widener_wrapping.h"

#include <llvm/ADT/Sequence.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/KnownBits.h>

#include <algorithm>
#include <array>

#include "compiler/vectorize/widener_lane_values.h"

namespace kiln::widening {

// Sums and casts in a row, of a number whose range is found.
static constexpr unsigned kRangeDepth = 16;

// Whether they are the first lane's plus so many strides, modulo their size.
static bool follow_stride(const std::array<APInt, kLanes>& values) {
  const APInt stride = values[1] - values[0];
  return all_of(llvm::seq(1u, kLanes), [&](unsigned lane) { return values[lane] - values[lane - 1] == stride; });
}

// Whether a lane's value is the first lane's plus so many strides, modulo the type's size.
bool Wrapping::wraps_as_a_whole(Value* value, SmallPtrSetImpl<Instruction*>& seen) {
  if (!flow_.is_divergent(value) || is_lane(value)) return true;
  if (auto values = lane_bits(value, flow_, layout_)) return follow_stride(*values);
  auto* instruction = cast<Instruction>(value);
  if (!seen.insert(instruction).second) return true;
  auto all_operands = [&](auto&& operands) {
    return all_of(operands, [&](Value* operand) { return wraps_as_a_whole(operand, seen); });
  };
  if (auto* phi = dyn_cast<PHINode>(instruction)) return all_operands(phi->incoming_values());
  if (std::optional<Piece> piece = strides_.piece_of(*instruction)) {
    if (Value* only = piece->side ? piece->side : piece->dividend) return wraps_as_a_whole(only, seen);
    return !isa<SelectInst>(instruction) || all_operands(drop_begin(instruction->operands()));
  }
  return wraps_only_with_operands(*instruction, /*in_any_width=*/true) && all_operands(instruction->operands());
}

namespace {

// scale * extension of a number of at most 32 bits
struct ScaledExtension {
  uint64_t scale;
  CastInst* extension;

  Value* number() const { return extension->getOperand(0); }
  uint64_t end() const { return scale << (number()->getType()->getIntegerBitWidth() - isa<SExtInst>(extension)); }
};

std::optional<ScaledExtension> scaled_extension_of(Value* offset) {
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
  if (!step || !isa<SExtInst, ZExtInst>(step) || step->getOperand(0)->getType()->isIntegerTy(1) ||
      step->getOperand(0)->getType()->getIntegerBitWidth() > 32)
    return std::nullopt;
  return ScaledExtension{scale, cast<CastInst>(step)};
}

}  // namespace

std::optional<uint64_t> Wrapping::end_of_extension(Value* offset) {
  std::optional<int64_t> stride = strides_.stride_of(offset);
  if (!stride || *stride <= 0) return std::nullopt;
  std::optional<ScaledExtension> extended = scaled_extension_of(offset);
  if (!extended || !wraps_as_a_whole(extended->number())) return std::nullopt;
  return extended->end();
}

std::optional<uint64_t> Wrapping::end_in_a_lane(Value* offset) {
  std::optional<ScaledExtension> extended = scaled_extension_of(offset);
  return extended ? std::optional(extended->end()) : std::nullopt;
}

bool wraps_only_with_operands(const Instruction& instruction, bool in_any_width) {
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
bool Wrapping::has_uniform_sign(Value* value) const {
  if (!flow_.is_divergent(value)) return true;
  if (auto values = values_of(value))
    return all_of(*values, [&](const APInt& one) { return one.isNegative() == values->front().isNegative(); });
  auto* instruction = dyn_cast<Instruction>(value);
  if (instruction && instruction->isBitwiseLogicOp())
    return has_uniform_sign(instruction->getOperand(0)) && has_uniform_sign(instruction->getOperand(1));
  return computeKnownBits(value, layout_).isNonNegative();
}

// Whether a narrow sum, or product with a constant, is small whichever lanes are active, so that it cannot wrap.
bool Wrapping::is_small_sum(const Instruction& instruction) const {
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
std::optional<Wrapping::Interval> Wrapping::exact_range(Value* value, bool pieces_hold, unsigned depth) {
  if (!value->getType()->isIntegerTy() || value->getType()->getIntegerBitWidth() > 32 || depth > kRangeDepth)
    return std::nullopt;
  auto [known, is_new] = exact_ranges_.try_emplace({value, pieces_hold});
  if (!is_new) return known->second;
  std::optional<Interval> range = computed_range(value, pieces_hold, depth);
  const unsigned bits = value->getType()->getIntegerBitWidth();
  if (range && (range->least < minIntN(bits) || range->most > maxIntN(bits))) range = std::nullopt;
  return exact_ranges_[{value, pieces_hold}] = range;
}

// A piece is in its range in every lane, whichever side that lane is on. Nothing where a signed number may be negative.
std::optional<Wrapping::Interval> Wrapping::range_of_piece(Instruction& instruction, unsigned depth) {
  const unsigned bits = instruction.getType()->getIntegerBitWidth();
  auto of = [&](Value* operand) {
    std::optional<Interval> range = exact_range(operand, /*pieces_hold=*/true, depth + 1);
    if (!range) return ConstantRange::getFull(bits);
    auto end = [&](int64_t number) { return APInt(bits, static_cast<uint64_t>(number), /*isSigned=*/true); };
    return ConstantRange::getNonEmpty(end(range->least), end(range->most) + 1);
  };
  std::optional<ConstantRange> range;
  if (auto* call = dyn_cast<IntrinsicInst>(&instruction)) {
    if (!ConstantRange::isIntrinsicSupported(call->getIntrinsicID()) || call->arg_size() != 2) return std::nullopt;
    range = ConstantRange::intrinsic(call->getIntrinsicID(), {of(call->getArgOperand(0)), of(call->getArgOperand(1))});
  } else if (auto* operation = dyn_cast<BinaryOperator>(&instruction)) {
    range = of(operation->getOperand(0)).binaryOp(operation->getOpcode(), of(operation->getOperand(1)));
  }
  if (!range || range->isEmptySet() || range->getSignedMin().isNegative()) return std::nullopt;
  return Interval{range->getSignedMin().getSExtValue(), range->getSignedMax().getSExtValue()};
}

std::optional<Wrapping::Interval> Wrapping::computed_range(Value* value, bool pieces_hold, unsigned depth) {
  if (!flow_.is_divergent(value)) {
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
  if (pieces_hold && strides_.piece_of(*instruction)) return range_of_piece(*instruction, depth);
  auto of = [&](unsigned i) { return exact_range(instruction->getOperand(i), pieces_hold, depth + 1); };
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

bool Wrapping::never_wraps(Value* value, bool pieces_hold) {
  if (!flow_.is_divergent(value)) return true;
  if (auto values = values_of(value)) {
    // A narrow value may have wrapped, which its stride does not show. A pattern is made of the values themselves.
    std::optional<int64_t> stride = strides_.stride_of(value);
    for (unsigned lane = 0; stride && lane < kLanes; ++lane)
      if ((*values)[lane].getZExtValue() - (*values)[0].getZExtValue() != static_cast<uint64_t>(*stride) * lane)
        return false;
    return true;
  }
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || isa<PHINode>(instruction)) return false;
  if (std::optional<Piece> piece = pieces_hold ? strides_.piece_of(*instruction) : std::nullopt) {
    // The check of a piece is one of the numbers that it compares, from the first lane to the last.
    if (!isa<SelectInst>(instruction)) return true;
    auto is_checked = [&](Value* side) {
      return any_of(piece->comparisons, [&](const LaneComparison& one) { return one.number == side; }) ||
             never_wraps(side, pieces_hold);
    };
    return piece->side ? is_checked(piece->side) : all_of(drop_begin(instruction->operand_values()), is_checked);
  }
  if (isa<SExtInst, ZExtInst>(instruction))
    if (std::optional<Interval> range = exact_range(instruction->getOperand(0), pieces_hold);
        range && (isa<SExtInst>(instruction) || range->least >= 0))
      return true;
  if (is_small_sum(*instruction))
    return all_of(instruction->operands(), [&](Use& use) { return never_wraps(use.get(), pieces_hold); });
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
  return all_of(instruction->operands(), [&](Use& operand) { return never_wraps(operand.get(), pieces_hold); });
}

}  // namespace kiln::widening
