#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>

#include <algorithm>

#include "compiler/ir/simdgroup.h"
#include "compiler/vectorize/widener.h"

namespace kiln::widening {

namespace {

constexpr uint64_t kMaxOffset = 1 << 16;
// As many loads and permutations take the time of a gather of all lanes, or of a loop over them.
constexpr unsigned kGatherCost = 24, kLaneLoopCost = 64;

}  // namespace

// Each lane's value, if it depends on the lane only.
std::optional<std::array<APInt, kLanes>> Widener::values_of(Value* value, unsigned depth) {
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

// The bits of a lane's value that come from the lane index, if the others come from uniform values:
// `(first | lane) << 6 & 0x7e00`.
std::optional<std::array<APInt, kLanes>> Widener::lane_bits(Value* value, unsigned depth) {
  if (auto values = values_of(value, depth)) return values;
  if (!value->getType()->isIntegerTy() || depth > 6) return std::nullopt;
  if (!lanes_.is_divergent(value)) {
    std::array<APInt, kLanes> none;
    none.fill(APInt(value->getType()->getIntegerBitWidth(), 0));
    return none;
  }
  auto* operation = dyn_cast<BinaryOperator>(value);
  if (!operation) return std::nullopt;
  auto bits = lane_bits(operation->getOperand(0), depth + 1);
  if (!bits) return std::nullopt;
  if (operation->getOpcode() == Instruction::Or) {
    auto others = lane_bits(operation->getOperand(1), depth + 1);
    if (!others || !cast<PossiblyDisjointInst>(operation)->isDisjoint()) return std::nullopt;
    // `disjoint` may hold only for lanes that take a branch: in other lanes the sum that at_lane() computes would
    // carry.
    auto may_collide = [&](const std::array<APInt, kLanes>& from_lane, Value* other) {
      KnownBits known = computeKnownBits(other, layout_, /*Depth=*/0, /*AC=*/nullptr, /*CxtI=*/nullptr, /*DT=*/nullptr,
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

// Whether the arithmetic that computes the value wraps exactly as the value itself does.
bool Widener::is_modular(Value* value) {
  if (!lanes_.is_divergent(value) || is_lane(value) || values_of(value) || lane_bits(value)) return true;
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
  return all_of(operation->operands(), [&](Use& operand) { return is_modular(operand.get()); });
}

std::optional<Widener::Pattern> Widener::pattern_of(Value* value) {
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
  auto is_uniform = [&](unsigned i) { return !lanes_.is_divergent(instruction->getOperand(i)); };
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
      if (auto bits = lane_bits(instruction)) return of_values(*bits);
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
        if (divergent_indices.size() > 1 && !never_wraps(instruction->getOperand(i))) return std::nullopt;
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

std::optional<Widener::Pattern> Widener::sum_of_patterns(Value* one, Value* other) {
  // Otherwise one of them could wrap and the other make up for it.
  auto is_sound = [&](Value* value) { return is_modular(value) || never_wraps(value); };
  if (!is_sound(one) || !is_sound(other)) return std::nullopt;
  std::optional<Pattern> first = pattern_of(one), second = pattern_of(other);
  if (!first || !second) return std::nullopt;
  return added(*first, *second);
}

Widener::Pattern Widener::added(const Pattern& first, const Pattern& second) {
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

// Whether both values have the same differences between lanes, but for wrapping.
bool Widener::have_equal_strides(Value* one, Value* other) {
  if (std::optional<int64_t> stride = stride_of(one)) return stride == stride_of(other);
  std::optional<Pattern> pattern = pattern_of(one);
  return pattern && pattern == pattern_of(other);
}

// Whether elements at the offsets are in a row.
static bool are_consecutive(ArrayRef<uint64_t> offsets, uint64_t bytes) {
  return all_of(llvm::seq<size_t>(0, offsets.size()), [&](size_t i) { return offsets[i] == offsets[0] + i * bytes; });
}

// The most lanes of a power of two, from 16 to 4, of which each group is consecutive, as in rows of a tile. 0: there
// are none.
unsigned Widener::strip_of(const Pattern& pattern, uint64_t bytes) {
  for (unsigned length = kLanes / 2; length > 2; length /= 2) {
    bool are_strips = true;
    for (unsigned lane = 0; lane < kLanes; lane += length)
      are_strips &= are_consecutive(ArrayRef(pattern.offsets).slice(lane, length), bytes);
    if (are_strips) return length;
  }
  return 0;
}

// Stores a few strips of several lanes each. Strips that overlap are stored in the order of lanes.
bool Widener::store_pattern(StoreInst& store, Value* pointer, Value* allowed, IRBuilder<>& builder) {
  std::optional<Pattern> pattern = pattern_of(pointer);
  Type* type = store.getValueOperand()->getType();
  const uint64_t bytes = layout_.getTypeStoreSize(type);
  if (!pattern || bytes != layout_.getTypeAllocSize(type)) return false;
  const unsigned length = strip_of(*pattern, bytes);
  if (length == 0) return false;
  Value* lanes = lanes_.vector(store.getValueOperand(), builder);
  auto store_strips = [&](Value* address) -> Values {
    for (unsigned lane = 0; lane < kLanes; lane += length) {
      Value* strip = builder.CreateConstGEP1_64(builder.getInt8Ty(), address, pattern->offsets[lane]);
      Value* stored = builder.CreateShuffleVector(lanes, createSequentialMask(lane, length, 0));
      if (is_all(lanes_.mask()) || !lanes_.can_mask(bytes))
        builder.CreateAlignedStore(stored, strip, store.getAlign());
      else
        builder.CreateMaskedStore(stored, strip, store.getAlign(), lanes_.lanes_of_mask(lane, length, builder));
    }
    return {};
  };
  auto scalarized = [&]() -> Values {
    widen_store_scalarized(store, builder);
    return {};
  };
  AccessShape shape{bytes, pattern->offsets[pattern->highest], true, false, pattern->lowest};
  emit_by_shape(pointer, allowed, shape, builder, store_strips, scalarized);
  return true;
}

// How lanes whose addresses follow a pattern are loaded: in pieces of equally many consecutive lanes, each from the
// elements between its lowest and its highest. A piece of one element is a scalar, as `a[ty][k]` is in threadgroups of
// short rows; pieces that take the same elements, as of `b[k][tx]` there, are loaded once.
std::optional<Widener::Pieces> Widener::pieces_of(const Pattern& pattern, uint64_t bytes, unsigned most_cost) const {
  const uint64_t num_elements = pattern.offsets[pattern.highest] / bytes + 1;
  const unsigned width = isa_.num_elements(bytes);
  std::optional<Pieces> best;
  for (unsigned length = kLanes; length > 2; length /= 2) {
    Pieces pieces{length, {}, true, 0};
    for (unsigned lane = 0; lane < kLanes; lane += length) {
      const auto offsets = ArrayRef(pattern.offsets).slice(lane, length);
      Window window{*llvm::min_element(offsets) / bytes, 0, {}};
      window.count = *llvm::max_element(offsets) / bytes + 1 - window.first;
      const bool is_strip = are_consecutive(offsets, bytes);
      pieces.are_strips &= is_strip;
      // Whole registers if the pattern has so many elements.
      const uint64_t rounded = PowerOf2Ceil(window.count);
      if (!is_strip && rounded <= num_elements) {
        window.count = rounded;
        window.first = std::min(window.first, num_elements - rounded);
      }
      for (uint64_t offset : offsets) window.elements.push_back(static_cast<unsigned>(offset / bytes - window.first));
      if (!is_contained(pieces.windows, window)) {
        const auto registers = static_cast<unsigned>(divideCeil(window.count, width));
        const unsigned permutations = (registers > 1 && !isa_.permute_two_registers ? 2 : 1) * registers;
        pieces.cost += registers;
        if (!is_strip && window.count > 1) pieces.cost += permutations * divideCeil(length, width);
      }
      // Pieces of less than a register are put together.
      if (length < width) pieces.cost += 1;
      pieces.windows.push_back(std::move(window));
    }
    if (pieces.cost < most_cost) {
      most_cost = pieces.cost;
      best = std::move(pieces);
    }
  }
  return best;
}

// What some lanes take from a few elements in a row.
Value* Widener::load_window(const LoadInst& load, const Window& window, Value* address, IRBuilder<>& builder) {
  const auto length = static_cast<unsigned>(window.elements.size()), count = static_cast<unsigned>(window.count);
  const unsigned width = lanes_.register_lanes(load.getType());
  if (count == 1) {
    LoadInst* element = builder.CreateAlignedLoad(load.getType(), address, load.getAlign());
    element->copyMetadata(load, {LLVMContext::MD_invariant_load});
    return builder.CreateVectorSplat(length, element);
  }
  if (count <= 2 * width) {
    Value* elements = load_part(load, count, address, builder);
    const SmallVector<int> sources(window.elements.begin(), window.elements.end());
    return ShuffleVectorInst::isIdentityMask(sources, static_cast<int>(count))
               ? elements
               : builder.CreateShuffleVector(elements, sources);
  }
  // The last register ends where the window does.
  Values registers, parts;
  SmallVector<unsigned> starts;
  for (unsigned first = 0; first < count; first += width) starts.push_back(std::min(first, count - width));
  for (unsigned start : starts)
    registers.push_back(load_part(load, width, builder.CreateConstGEP1_32(load.getType(), address, start), builder));
  for (unsigned first = 0; first < length; first += width) {
    SmallVector<unsigned> elements;
    for (unsigned i = 0; i < width; ++i) {
      const unsigned element = window.elements[std::min(first + i, length - 1)], number = element / width;
      elements.push_back(number * width + element - starts[number]);
    }
    parts.push_back(collected(registers, elements, builder));
  }
  if (length < width) return builder.CreateShuffleVector(parts[0], createSequentialMask(0, length, 0));
  return concatenateVectors(builder, parts);
}

// Loads a few elements, of which each lane takes one.
bool Widener::load_pattern(LoadInst& load, Value* pointer, Value* allowed, IRBuilder<>& builder) {
  std::optional<Pattern> pattern = pattern_of(pointer);
  if (!pattern) return false;
  const uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  if (bytes != layout_.getTypeAllocSize(load.getType())) return false;
  if (any_of(pattern->offsets, [&](uint64_t offset) { return offset % bytes != 0; })) return false;
  auto scalarized = [&]() -> Values {
    widen_load_scalarized(load, builder);
    return {lanes_.known_vector(&load)};
  };
  std::optional<Pieces> pieces =
      pieces_of(*pattern, bytes, lanes_.has_gathers(load.getType()) ? kGatherCost : kLaneLoopCost);
  if (!pieces) return false;
  const bool is_masked = pieces->are_strips && !is_all(lanes_.mask()) && lanes_.can_mask(bytes);
  auto load_pieces = [&](Value* address) -> Values {
    Values parts;
    for (auto [number, window] : enumerate(pieces->windows)) {
      const unsigned lane = static_cast<unsigned>(number) * pieces->length;
      const auto* earlier = llvm::find(pieces->windows, window);
      if (!is_masked && earlier != &window) {
        parts.push_back(parts[static_cast<size_t>(earlier - pieces->windows.begin())]);
        continue;
      }
      Value* from = builder.CreateConstGEP1_64(builder.getInt8Ty(), address, window.first * bytes);
      if (is_masked) {
        Type* type = FixedVectorType::get(load.getType(), pieces->length);
        parts.push_back(builder.CreateMaskedLoad(type, from, load.getAlign(),
                                                 lanes_.lanes_of_mask(lane, pieces->length, builder),
                                                 Constant::getNullValue(type)));
      } else {
        parts.push_back(load_window(load, window, from, builder));
      }
    }
    return {concatenateVectors(builder, parts)};
  };
  AccessShape shape{bytes, pattern->offsets[pattern->highest], true, !is_masked, pattern->lowest};
  lanes_.set_vector(&load, emit_by_shape(pointer, allowed, shape, builder, load_pieces, scalarized)[0]);
  return true;
}

}  // namespace kiln::widening
