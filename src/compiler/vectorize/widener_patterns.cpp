#include "compiler/vectorize/widener_patterns.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Support/KnownBits.h>

#include <algorithm>
#include <bitset>

#include "compiler/vectorize/widener_lane_values.h"

namespace kiln::widening {

static constexpr uint64_t kMaxOffset = 1 << 16;

// Of a number through which its likely pattern is followed.
static constexpr unsigned kMostOperations = 12;

static Pattern added(const Pattern& first, const Pattern& second) {
  Pattern sum = first;
  for (unsigned lane = 0; lane < kLanes; ++lane) sum.offsets[lane] += second.offsets[lane];
  auto lowest = std::min_element(sum.offsets.begin(), sum.offsets.end());
  auto highest = std::max_element(sum.offsets.begin(), sum.offsets.end());
  sum.lowest = static_cast<unsigned>(lowest - sum.offsets.begin());
  sum.highest = static_cast<unsigned>(highest - sum.offsets.begin());
  uint64_t least = *lowest;
  for (uint64_t& offset : sum.offsets) offset -= least;
  return sum;
}

// Numbers that may be negative, unlike those of lanes' bits.
static std::optional<Pattern> pattern_of_values(const std::array<int64_t, kLanes>& values) {
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  if (*highest - *lowest > static_cast<int64_t>(kMaxOffset)) return std::nullopt;
  Pattern pattern{{}, static_cast<unsigned>(lowest - values.begin()), static_cast<unsigned>(highest - values.begin())};
  for (unsigned lane = 0; lane < kLanes; ++lane) pattern.offsets[lane] = static_cast<uint64_t>(values[lane] - *lowest);
  return pattern;
}

static std::optional<Pattern> times(std::optional<Pattern> pattern, uint64_t factor) {
  if (!pattern || factor > kMaxOffset || pattern->offsets[pattern->highest] * factor > kMaxOffset) return std::nullopt;
  for (uint64_t& offset : pattern->offsets) offset *= factor;
  return pattern;
}

static Pattern negated(Pattern pattern) {
  const uint64_t farthest = pattern.offsets[pattern.highest];
  for (uint64_t& offset : pattern.offsets) offset = farthest - offset;
  std::swap(pattern.lowest, pattern.highest);
  return pattern;
}

// Of a multiplication or shift by a constant. More than kMaxOffset otherwise.
static uint64_t factor_of(const Instruction& product) {
  const auto* by = dyn_cast<ConstantInt>(product.getOperand(1));
  if (!by || by->getValue().getActiveBits() > 16) return kMaxOffset + 1;
  if (product.getOpcode() == Instruction::Mul) return by->getZExtValue();
  return by->getZExtValue() > 16 ? kMaxOffset + 1 : uint64_t{1} << by->getZExtValue();
}

std::optional<Pattern> AddressPatterns::pattern_of(Value* value) {
  auto of_values = [](const std::array<APInt, kLanes>& values) -> std::optional<Pattern> {
    auto less = [](const APInt& a, const APInt& b) { return a.ult(b); };
    auto lowest = std::min_element(values.begin(), values.end(), less);
    auto highest = std::max_element(values.begin(), values.end(), less);
    if ((*highest - *lowest).ugt(kMaxOffset)) return std::nullopt;
    Pattern pattern{
        {}, static_cast<unsigned>(lowest - values.begin()), static_cast<unsigned>(highest - values.begin())};
    for (unsigned lane = 0; lane < kLanes; ++lane) pattern.offsets[lane] = (values[lane] - *lowest).getZExtValue();
    return pattern;
  };
  if (auto values = values_of(value)) return of_values(*values);
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction) return std::nullopt;
  auto of = [&](unsigned i) { return pattern_of(instruction->getOperand(i)); };
  auto is_uniform = [&](unsigned i) { return !flow_.is_divergent(instruction->getOperand(i)); };
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
      if (is_uniform(1)) return of(0);
      if (is_uniform(0)) return of(1);
      return sum_of_patterns(instruction->getOperand(0), instruction->getOperand(1));
    case Instruction::And:
      if (auto bits = lane_bits(instruction, flow_, layout_)) return of_values(*bits);
      return std::nullopt;
    case Instruction::Sub: {
      if (is_uniform(1)) return of(0);
      if (!is_uniform(0)) return std::nullopt;
      std::optional<Pattern> pattern = of(1);
      return pattern ? std::optional(negated(*pattern)) : std::nullopt;
    }
    case Instruction::Xor: {
      // All bits inverted: -1 less the number.
      const auto* bits = dyn_cast<ConstantInt>(instruction->getOperand(1));
      std::optional<Pattern> pattern = bits && bits->isMinusOne() ? of(0) : std::nullopt;
      return pattern ? std::optional(negated(*pattern)) : std::nullopt;
    }
    case Instruction::Mul:
    case Instruction::Shl: return times(of(0), factor_of(*instruction));
    case Instruction::GetElementPtr: {
      SmallVector<unsigned> divergent_indices;
      for (unsigned i = 0; i < instruction->getNumOperands(); ++i)
        if (!is_uniform(i)) divergent_indices.push_back(i);
      if (divergent_indices.empty() || divergent_indices[0] == 0)
        return divergent_indices.size() <= 1 ? of(0) : std::nullopt;
      std::optional<Pattern> sum;
      for (unsigned i : divergent_indices) {
        // Otherwise one of them could wrap and the other make up for it.
        if (divergent_indices.size() > 1 && !wrapping_.never_wraps(instruction->getOperand(i))) return std::nullopt;
        auto level = gep_type_begin(instruction);
        std::advance(level, i - 1);
        std::optional<Pattern> term = times(of(i), level.getSequentialElementStride(layout_));
        if (!term) return std::nullopt;
        sum = sum ? added(*sum, *term) : *term;
      }
      return sum;
    }
    default: return std::nullopt;
  }
}

std::optional<Pattern> AddressPatterns::sum_of_patterns(Value* one, Value* other) {
  // Otherwise one of them could wrap and the other make up for it.
  auto is_sound = [&](Value* value) { return is_modular(value, flow_, layout_) || wrapping_.never_wraps(value); };
  if (!is_sound(one) || !is_sound(other)) return std::nullopt;
  std::optional<Pattern> first = pattern_of(one), second = pattern_of(other);
  if (!first || !second) return std::nullopt;
  return added(*first, *second);
}

// The operand that a number has but at a border: of a minimum or maximum that which differs between lanes. Null where
// both do.
static Value* within_borders(Instruction& instruction, const StructuredFlow& flow) {
  unsigned i = 0;
  if (isa<FreezeInst, ZExtInst, SExtInst>(instruction)) return instruction.getOperand(0);
  if (isa<MinMaxIntrinsic>(instruction) || isa<SelectInst>(instruction)) {
    i = isa<SelectInst>(instruction) ? 1 : 0;
  } else if (instruction.getOpcode() == Instruction::URem || instruction.getOpcode() == Instruction::SRem) {
    return flow.is_divergent(instruction.getOperand(1)) ? nullptr : instruction.getOperand(0);
  } else {
    return nullptr;
  }
  Value *one = instruction.getOperand(i), *other = instruction.getOperand(i + 1);
  if (flow.is_divergent(one) == flow.is_divergent(other)) return nullptr;
  return flow.is_divergent(one) ? one : other;
}

// By what power of two a number is divided, or nothing.
static std::optional<unsigned> shift_of_division(const Instruction& instruction) {
  const auto* by = instruction.getNumOperands() == 2 ? dyn_cast<ConstantInt>(instruction.getOperand(1)) : nullptr;
  if (!by) return std::nullopt;
  switch (instruction.getOpcode()) {
    case Instruction::LShr:
    case Instruction::AShr:
      if (by->getValue().uge(kLanes)) return std::nullopt;
      return static_cast<unsigned>(by->getZExtValue());
    case Instruction::UDiv:
    case Instruction::SDiv:
      if (!by->getValue().isPowerOf2() || by->isNegative()) return std::nullopt;
      return by->getValue().logBase2();
    default: return std::nullopt;
  }
}

// The lanes in which a comparison of numbers known of each lane holds, as that of `x & 1` with 0.
static std::optional<std::bitset<kLanes>> lanes_of_condition(Value* condition) {
  auto* comparison = dyn_cast<ICmpInst>(condition);
  if (!comparison) return std::nullopt;
  auto first = values_of(comparison->getOperand(0)), second = values_of(comparison->getOperand(1));
  if (!first || !second) return std::nullopt;
  std::bitset<kLanes> lanes;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    lanes[lane] = ICmpInst::compare((*first)[lane], (*second)[lane], comparison->getPredicate());
  return lanes;
}

// A number as another plus a small constant, where no lane is at a border.
std::pair<Value*, int64_t> AddressPatterns::likely_constant_added(Value* number) const {
  int64_t constant = 0;
  for (unsigned steps = 0; steps < kMostOperations; ++steps) {
    auto* instruction = dyn_cast<Instruction>(number);
    if (!instruction) break;
    if (Value* inner = within_borders(*instruction, flow_)) {
      number = inner;
      continue;
    }
    const auto* by =
        instruction->getOpcode() == Instruction::Add ? dyn_cast<ConstantInt>(instruction->getOperand(1)) : nullptr;
    if (!by || !by->getValue().isSignedIntN(16)) break;
    constant += by->getSExtValue();
    number = instruction->getOperand(0);
  }
  return {number, constant};
}

// Small numbers that lanes' values differ from one multiple of 2^bits by, which is the same for all.
std::optional<std::array<int64_t, kLanes>> AddressPatterns::likely_residues(Value* number, unsigned bits,
                                                                            unsigned depth) {
  std::array<int64_t, kLanes> residues;
  if (!number->getType()->isIntegerTy() || depth > kMostOperations) return std::nullopt;
  if (!flow_.is_divergent(number)) {
    // What is not known is mostly 0: rows have an even number of elements.
    const KnownBits known = computeKnownBits(number, layout_);
    const APInt lowest = APInt::getLowBitsSet(known.getBitWidth(), std::min(bits, known.getBitWidth()));
    residues.fill((known.One & lowest).getSExtValue());
    return residues;
  }
  if (auto values = values_of(number)) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (!(*values)[lane].isSignedIntN(32)) return std::nullopt;
      residues[lane] = (*values)[lane].getSExtValue();
    }
    return residues;
  }
  auto* instruction = dyn_cast<Instruction>(number);
  if (!instruction) return std::nullopt;
  auto of = [&](Value* value) { return likely_residues(value, bits, depth + 1); };
  if (Value* inner = within_borders(*instruction, flow_)) return of(inner);
  const bool is_difference = instruction->getOpcode() == Instruction::Sub;
  const bool is_sum =
      instruction->getOpcode() == Instruction::Add ||
      (instruction->getOpcode() == Instruction::Or && cast<PossiblyDisjointInst>(instruction)->isDisjoint());
  if (!is_sum && !is_difference) return std::nullopt;
  auto first = of(instruction->getOperand(0)), second = of(instruction->getOperand(1));
  if (!first || !second) return std::nullopt;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    residues[lane] = (*first)[lane] + (is_difference ? -(*second)[lane] : (*second)[lane]);
  return residues;
}

std::optional<Pattern> AddressPatterns::likely_pattern_of(Value* number, unsigned depth) {
  if (!number->getType()->isIntegerTy() || depth > kMostOperations) return std::nullopt;
  if (std::optional<Pattern> pattern = pattern_of(number)) return pattern;
  auto* instruction = dyn_cast<Instruction>(number);
  if (!instruction) return std::nullopt;
  auto of = [&](Value* value) { return likely_pattern_of(value, depth + 1); };
  if (Value* inner = within_borders(*instruction, flow_)) return of(inner);
  if (const std::optional<unsigned> bits = shift_of_division(*instruction)) {
    auto residues = likely_residues(instruction->getOperand(0), *bits, depth + 1);
    if (!residues) return std::nullopt;
    for (int64_t& residue : *residues) residue >>= *bits;  // rounds down
    return pattern_of_values(*residues);
  }
  if (auto* select = dyn_cast<SelectInst>(instruction)) {
    if (auto in_lanes = lanes_of_condition(select->getCondition())) {
      const auto [one, more] = likely_constant_added(select->getTrueValue());
      const auto [other, more_otherwise] = likely_constant_added(select->getFalseValue());
      std::optional<Pattern> pattern = one == other ? of(one) : std::nullopt;
      if (!pattern) return std::nullopt;
      std::array<int64_t, kLanes> values;
      for (unsigned lane = 0; lane < kLanes; ++lane)
        values[lane] = static_cast<int64_t>(pattern->offsets[lane]) + (in_lanes->test(lane) ? more : more_otherwise);
      return pattern_of_values(values);
    }
    std::optional<Pattern> pattern = of(select->getTrueValue());
    return pattern && pattern == of(select->getFalseValue()) ? pattern : std::nullopt;
  }
  switch (instruction->getOpcode()) {
    case Instruction::Add:
    case Instruction::Sub: {
      Value *one = instruction->getOperand(0), *other = instruction->getOperand(1);
      const bool is_difference = instruction->getOpcode() == Instruction::Sub;
      if (!flow_.is_divergent(other)) return of(one);
      std::optional<Pattern> second = of(other);
      if (second && is_difference) second = negated(*second);
      if (!second || !flow_.is_divergent(one)) return second;
      std::optional<Pattern> first = of(one);
      return first ? std::optional(added(*first, *second)) : std::nullopt;
    }
    case Instruction::Mul:
    case Instruction::Shl: return times(of(instruction->getOperand(0)), factor_of(*instruction));
    default: return std::nullopt;
  }
}

bool AddressPatterns::have_equal_strides(Value* one, Value* other) {
  if (std::optional<int64_t> stride = strides_.stride_of(one)) return stride == strides_.stride_of(other);
  std::optional<Pattern> pattern = pattern_of(one);
  return pattern && pattern == pattern_of(other);
}

bool are_consecutive(ArrayRef<uint64_t> offsets, uint64_t bytes) {
  return all_of(llvm::seq<size_t>(0, offsets.size()), [&](size_t i) { return offsets[i] == offsets[0] + i * bytes; });
}

unsigned strip_of(const Pattern& pattern, uint64_t bytes) {
  for (unsigned length = kLanes / 2; length > 2; length /= 2) {
    bool are_strips = true;
    for (unsigned lane = 0; lane < kLanes; lane += length)
      are_strips &= are_consecutive(ArrayRef(pattern.offsets).slice(lane, length), bytes);
    if (are_strips) return length;
  }
  return 0;
}

}  // namespace kiln::widening
