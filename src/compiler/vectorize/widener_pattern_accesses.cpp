#include "compiler/vectorize/widener_pattern_accesses.h"

#include <llvm/ADT/SmallSet.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>

#include <algorithm>

namespace kiln::widening {

namespace {

// As many loads and permutations take the time of a gather of all lanes, or of a loop over them.
constexpr unsigned kGatherCost = 24, kLaneLoopCost = 64;

// Permutations, shifts and conversions of words for elements of 1 and 2 bytes: a register of words takes each lane's
// from those registers that have one of its lanes'.
unsigned cost_of_words(ArrayRef<unsigned> elements, uint64_t bytes, const VectorIsa& isa) {
  unsigned cost = 0;
  for (size_t first = 0; first < elements.size(); first += isa.num_words()) {
    SmallSet<uint64_t, 8> registers;
    for (unsigned element : elements.slice(first, std::min<size_t>(isa.num_words(), elements.size() - first)))
      registers.insert(element * bytes / isa.register_bytes);
    cost += (isa.permute_two_registers ? 1 : 3) * static_cast<unsigned>(registers.size()) + 2;
  }
  return cost;
}

// For each of as many elements in a row as there are lanes the lane that has it, as where lanes go backwards. Empty:
// not each has one.
SmallVector<int> lanes_of_elements(const Pattern& pattern, uint64_t bytes) {
  SmallVector<int> lanes(kLanes, -1);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const uint64_t offset = pattern.offsets[lane];
    if (offset % bytes != 0 || offset / bytes >= kLanes) return {};
    lanes[offset / bytes] = static_cast<int>(lane);
  }
  return is_contained(lanes, -1) ? SmallVector<int>() : lanes;
}

}  // namespace

// Stores a few strips of several lanes each, or all lanes as a row, in another order. Strips that overlap are stored in
// the order of lanes.
bool PatternAccesses::store(StoreInst& store, IRBuilder<>& builder) {
  auto [allowed, pointer] = guarded_address_of(store);
  std::optional<Pattern> pattern = patterns_.pattern_of(pointer);
  Type* type = store.getValueOperand()->getType();
  const uint64_t bytes = layout_.getTypeStoreSize(type);
  if (!pattern || bytes != layout_.getTypeAllocSize(type)) return false;
  unsigned length = strip_of(*pattern, bytes);
  SmallVector<int> order = createSequentialMask(0, kLanes, 0);
  if (length == 0) {
    order = lanes_of_elements(*pattern, bytes);
    length = kLanes;
  }
  if (order.empty()) return false;
  Value* lanes = lanes_.vector(store.getValueOperand(), builder);
  auto store_strips = [&](Value* address) -> Values {
    for (unsigned first = 0; first < kLanes; first += length) {
      const auto sources = ArrayRef(order).slice(first, length);
      const uint64_t offset = pattern->offsets[static_cast<unsigned>(sources[0])];
      Value* strip = builder.CreateConstGEP1_64(builder.getInt8Ty(), address, offset);
      Value* stored = builder.CreateShuffleVector(lanes, sources);
      if (is_all(lanes_.mask()) || !lanes_.can_mask(bytes))
        builder.CreateAlignedStore(stored, strip, store.getAlign());
      else
        builder.CreateMaskedStore(stored, strip, store.getAlign(), builder.CreateShuffleVector(lanes_.mask(), sources));
    }
    return {};
  };
  auto scalarized = [&]() -> Values {
    lane_accesses_.store(store, builder);
    return {};
  };
  AccessShape shape{bytes, pattern->offsets[pattern->highest], true, false, pattern->lowest};
  checks_.emit_by_shape(pointer, allowed, shape, builder, store_strips, scalarized);
  return true;
}

// How lanes whose addresses follow a pattern are loaded: in pieces of equally many consecutive lanes, each from the
// elements between its lowest and its highest. A piece of one element is a scalar, as `a[ty][k]` is in threadgroups of
// short rows; pieces that take the same elements, as of `b[k][tx]` there, are loaded once.
std::optional<PatternAccesses::Pieces> PatternAccesses::pieces_of(const Pattern& pattern, uint64_t bytes,
                                                                  unsigned most_cost) const {
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
        if (!is_strip && takes_words(window, bytes))
          pieces.cost += cost_of_words(window.elements, bytes, isa_);
        else if (!is_strip && window.count > 1)
          pieces.cost += permutations * divideCeil(length, width);
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
Value* PatternAccesses::load_window(const LoadInst& load, const Window& window, Value* address, IRBuilder<>& builder) {
  const auto length = static_cast<unsigned>(window.elements.size()), count = static_cast<unsigned>(window.count);
  const unsigned width = lanes_.register_lanes(load.getType());
  if (count == 1) {
    LoadInst* element = builder.CreateAlignedLoad(load.getType(), address, load.getAlign());
    element->copyMetadata(load, {LLVMContext::MD_invariant_load});
    return builder.CreateVectorSplat(length, element);
  }
  if (count <= 2 * width) {
    // Of an odd number two vectors, of which the second one ends where the window does: LLVM would load the rest in
    // parts.
    const unsigned part = 1u << Log2_32(count), second = count - part;
    Value* elements = strided_.load_part(load, part, address, builder);
    Value* rest = second == 0 ? elements
                              : strided_.load_part(
                                    load, part, builder.CreateConstGEP1_32(load.getType(), address, second), builder);
    SmallVector<int> sources;
    for (const unsigned element : window.elements)
      sources.push_back(static_cast<int>(element < part ? element : part + element - second));
    return ShuffleVectorInst::isIdentityMask(sources, static_cast<int>(part))
               ? elements
               : builder.CreateShuffleVector(elements, rest, sources);
  }
  if (takes_words(window, layout_.getTypeStoreSize(load.getType())))
    return load_narrow_window(load, window, address, builder);
  // The last register ends where the window does.
  Values registers, parts;
  SmallVector<unsigned> starts;
  for (unsigned first = 0; first < count; first += width) starts.push_back(std::min(first, count - width));
  for (unsigned start : starts)
    registers.push_back(
        strided_.load_part(load, width, builder.CreateConstGEP1_32(load.getType(), address, start), builder));
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

// Few processors permute the bytes of two registers, and LLVM makes half a dozen instructions of it each time.
Value* PatternAccesses::load_narrow_window(const LoadInst& load, const Window& window, Value* address,
                                           IRBuilder<>& builder) {
  const auto bytes = static_cast<unsigned>(layout_.getTypeStoreSize(load.getType()));
  const auto length = static_cast<unsigned>(window.elements.size());
  const unsigned width = isa_.num_words(), register_bytes = isa_.register_bytes;
  const auto count = static_cast<unsigned>(window.count) * bytes;
  Type *word = builder.getInt32Ty(), *element = builder.getIntNTy(8 * bytes);
  // The last register ends where the window does.
  SmallVector<unsigned> starts;
  for (unsigned first = 0; first < count; first += register_bytes)
    starts.push_back(std::min(first, count - register_bytes));
  Values registers, parts;
  for (unsigned start : starts)
    registers.push_back(strided_.load_part(load, width, builder.CreateConstGEP1_32(builder.getInt8Ty(), address, start),
                                           builder, word));
  for (unsigned first = 0; first < length; first += width) {
    SmallVector<unsigned> words;
    SmallVector<Constant*> shifts;
    for (unsigned i = 0; i < width; ++i) {
      const unsigned at = window.elements[std::min(first + i, length - 1)] * bytes, number = at / register_bytes;
      const unsigned in_register = at - starts[number];
      words.push_back(number * width + in_register / 4);
      shifts.push_back(builder.getInt32(8 * (in_register % 4)));
    }
    Value* taken = builder.CreateLShr(collected(registers, words, builder), ConstantVector::get(shifts));
    parts.push_back(builder.CreateTrunc(taken, FixedVectorType::get(element, width)));
  }
  Value* all = length < width ? builder.CreateShuffleVector(parts[0], createSequentialMask(0, length, 0))
                              : concatenateVectors(builder, parts);
  return builder.CreateBitCast(all, FixedVectorType::get(load.getType(), length));
}

std::optional<PatternAccesses::Pieces> PatternAccesses::pieces_of(const LoadInst& load, const Pattern& pattern) const {
  const uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  if (bytes != layout_.getTypeAllocSize(load.getType())) return std::nullopt;
  if (any_of(pattern.offsets, [&](uint64_t offset) { return offset % bytes != 0; })) return std::nullopt;
  return pieces_of(pattern, bytes, lanes_.is_gathered(load) ? kGatherCost : kLaneLoopCost);
}

Value* PatternAccesses::load_pieces(const LoadInst& load, const Pieces& pieces, bool is_masked, Value* address,
                                    IRBuilder<>& builder) {
  const uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  Values parts;
  for (auto [number, window] : enumerate(pieces.windows)) {
    const unsigned lane = static_cast<unsigned>(number) * pieces.length;
    const auto* earlier = llvm::find(pieces.windows, window);
    if (!is_masked && earlier != &window) {
      parts.push_back(parts[static_cast<size_t>(earlier - pieces.windows.begin())]);
      continue;
    }
    Value* from = builder.CreateConstGEP1_64(builder.getInt8Ty(), address, window.first * bytes);
    if (is_masked) {
      Type* type = FixedVectorType::get(load.getType(), pieces.length);
      parts.push_back(builder.CreateMaskedLoad(type, from, load.getAlign(),
                                               lanes_.lanes_of_mask(lane, pieces.length, builder),
                                               Constant::getNullValue(type)));
    } else {
      parts.push_back(load_window(load, window, from, builder));
    }
  }
  return concatenateVectors(builder, parts);
}

// Loads a few elements, of which each lane takes one.
bool PatternAccesses::load(LoadInst& load, IRBuilder<>& builder) {
  auto [allowed, pointer] = guarded_address_of(load);
  std::optional<Pattern> pattern = patterns_.pattern_of(pointer);
  if (!pattern) return false;
  std::optional<Pieces> pieces = pieces_of(load, *pattern);
  if (!pieces) return false;
  const uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  const bool is_masked = pieces->are_strips && !is_all(lanes_.mask()) && lanes_.can_mask(bytes);
  auto in_pieces = [&](Value* address) -> Values { return {load_pieces(load, *pieces, is_masked, address, builder)}; };
  auto scalarized = [&]() -> Values {
    lane_accesses_.load(load, builder);
    return {lanes_.known_vector(&load)};
  };
  AccessShape shape{bytes, pattern->offsets[pattern->highest], true, !is_masked, pattern->lowest};
  lanes_.set_vector(&load, checks_.emit_by_shape(pointer, allowed, shape, builder, in_pieces, scalarized)[0]);
  return true;
}

}  // namespace kiln::widening
