// Loads whose lanes follow a pattern but at a border: of `a[min(x / 2 + 1, n - 1)]` two lanes share an element, of
// `a[max(n - 2 - x, 0)]` they go backwards, and a few at the border do not.
//
// The pattern is what the address has if each minimum, maximum, select and remainder takes the operand that differs
// between lanes (AddressPatterns::likely_pattern_of). When the code runs, the lanes' numbers are compared with the
// lowest one's plus the pattern, once for all loads at constant distances. If they are equal the elements between the
// lowest and the highest are loaded and permuted; otherwise each lane loads its own.

#include <llvm/Analysis/VectorUtils.h>

#include <algorithm>

#include "compiler/vectorize/widener_guards.h"
#include "compiler/vectorize/widener_run_time_shapes.h"
#include "compiler/vectorize/widener_windows.h"

namespace kiln::widening {

namespace {

// Elements from one of a sum to the next, as of a structure's members.
constexpr int64_t kMostScale = 8;

}  // namespace

// The lowest lane's number, and whether all lanes' are the pattern. Once for all loads of a scope.
std::pair<Value*, Value*> RunTimeShapes::tested_pattern(Value* number, const Pattern& pattern, IRBuilder<>& builder) {
  erase_if(tested_patterns_, [&](const TestedPattern& made) { return !lanes_.is_in_scope(made.scope); });
  auto found = find_if(tested_patterns_, [&](const TestedPattern& made) { return made.number == number; });
  if (found != tested_patterns_.end()) return {found->first, found->condition};
  Value* lanes = lanes_.vector(number, builder);
  // What inactive lanes have may be poison.
  if (!is_all(lanes_.mask())) lanes = builder.CreateFreeze(lanes);
  const unsigned width = std::max(isa_.num_words(), 8U);
  auto* type = cast<IntegerType>(number->getType());
  Value* first = builder.CreateExtractElement(lanes, pattern.lowest);
  Value* lowest = builder.CreateVectorSplat(width, first);
  Value* passed = nullptr;
  for (unsigned lane = 0; lane < kLanes; lane += width) {
    SmallVector<Constant*> steps;
    for (unsigned i = 0; i < width; ++i) steps.push_back(ConstantInt::get(type, pattern.offsets[lane + i]));
    Value* distance =
        builder.CreateSub(builder.CreateShuffleVector(lanes, createSequentialMask(lane, width, 0)), lowest);
    Value* is_equal = builder.CreateICmpEQ(distance, ConstantVector::get(steps));
    passed = passed ? builder.CreateAnd(passed, is_equal) : is_equal;
  }
  Value* condition = all_of_lanes(passed, builder);
  tested_patterns_.push_back({number, first, condition, lanes_.scope()});
  return {first, condition};
}

bool RunTimeShapes::load_likely_pattern(LoadInst& load, IRBuilder<>& builder) {
  auto [allowed, address] = guarded_address_of(load);
  const uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  if (num_tested_ >= kMostTestedAccesses || strides_.stride_of(address) ||
      isa<AllocaInst>(getUnderlyingObject(address)))
    return false;
  const std::optional<LaneSum> sum = lane_sums_.one_number_of(address, bytes, kMostScale);
  if (!sum || !lane_sums_.has_position(sum->terms[0].number)) return false;
  const auto [inner, added] = peeled(*sum);
  Value* number = inner.terms[0].number;
  const std::optional<Pattern> pattern = patterns_.likely_pattern_of(number);
  if (!pattern) return false;
  const uint64_t highest = pattern->offsets[pattern->highest], step = bytes * static_cast<uint64_t>(sum->scale);
  // Of so narrow a number lanes would be equal to the pattern that have wrapped.
  if (highest >= uint64_t{1} << std::min(number->getType()->getIntegerBitWidth() - 1, 32U)) return false;
  // Consecutive lanes are tested part by part, as rows of a threadgroup may be.
  if (highest == 0 || (sum->scale == 1 && are_consecutive(pattern->offsets, 1))) return false;
  Pattern in_bytes = *pattern;
  for (uint64_t& offset : in_bytes.offsets) offset *= step;
  const std::optional<PatternAccesses::Pieces> pieces = pattern_accesses_.pieces_of(load, in_bytes);
  if (!pieces) return false;

  Shape shape{*sum, std::nullopt, allowed, nullptr, step, kLanes, /*is_load=*/true, nullptr, false, {}};
  if (allowed && lanes_.is_divergent(allowed)) {
    const std::optional<LaneGuard> guard = lane_guard_of(allowed, flow_);
    if (!guard) return false;
    shape.limit = guard->limit;
    shape.offset = lane_sums_.one_number_of(guard->offset, bytes, kMostScale);
    if (!shape.offset || !shape.offset->has_terms_of(sum->terms) || shape.offset->scale != sum->scale) return false;
  }

  ++num_tested_;
  auto [first, condition] = tested_pattern(number, *pattern, builder);
  auto require = [&, &condition = condition](Value* what) {
    if (what) condition = builder.CreateAnd(condition, what);
  };
  require(extended(*sum, added, first, static_cast<unsigned>(highest) + 1, may_wrap(*sum), builder));
  require(are_in_bounds(shape, first, builder.getInt64(highest), builder));
  // Elements in bounds may be loaded for inactive lanes too.
  if (!shape.offset && !is_all(lanes_.mask())) require(lanes_.all_active(builder));
  auto in_pieces = [&, &first = first]() -> Values {
    Value* from = addresses_of(shape, first, builder)[0];
    return {pattern_accesses_.load_pieces(load, *pieces, /*is_masked=*/false, from, builder)};
  };
  auto scalarized = [&]() -> Values {
    lane_accesses_.load(load, builder);
    return {lanes_.known_vector(&load)};
  };
  lanes_.set_vector(&load,
                    lanes_.create_if_else({condition, "pattern", "lanes", false}, builder, in_pieces, scalarized)[0]);
  return true;
}

}  // namespace kiln::widening
