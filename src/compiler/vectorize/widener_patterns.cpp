#include "compiler/vectorize/widener_patterns.h"

#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>

#include "compiler/vectorize/widener_lane_values.h"

namespace kiln::widening {

static constexpr uint64_t kMaxOffset = 1 << 16;

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
  auto times = [](std::optional<Pattern> pattern, uint64_t factor) -> std::optional<Pattern> {
    if (!pattern || factor > kMaxOffset || pattern->offsets[pattern->highest] * factor > kMaxOffset)
      return std::nullopt;
    for (uint64_t& offset : pattern->offsets) offset *= factor;
    return pattern;
  };
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
      if (!pattern) return std::nullopt;
      uint64_t farthest = pattern->offsets[pattern->highest];
      for (uint64_t& offset : pattern->offsets) offset = farthest - offset;
      std::swap(pattern->lowest, pattern->highest);
      return pattern;
    }
    case Instruction::Mul:
    case Instruction::Shl: {
      auto* factor = dyn_cast<ConstantInt>(instruction->getOperand(1));
      if (!factor || factor->getValue().getActiveBits() > 16) return std::nullopt;
      uint64_t by = factor->getZExtValue();
      if (instruction->getOpcode() == Instruction::Shl) {
        if (by > 16) return std::nullopt;
        by = uint64_t{1} << by;
      }
      return times(of(0), by);
    }
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
