// Loads and stores whose lanes may turn out to be consecutive when the code runs.
//
// Problem: where the step from lane to lane is not known when the kernel is compiled, an access is a gather, a scatter,
// or a loop over lanes. Mostly the lanes are consecutive all the same: an index through max, min, clamp or a remainder
// is so everywhere but at a border, and in a threadgroup of 16 threads a row each half of a simdgroup is.
//
// Idea: an address is a sum of uniform values and of a few numbers that differ between lanes (widener_lane_sums.h).
// The sum of the latter, in elements, is a vector that is compared with its first element plus 0, 1, 2, …, for each
// part of a simdgroup that fills a register of words. A bounds check of consecutive elements is one of the first of
// them. If all parts pass, each is one load or store.
//
// The sum is computed in 32 bits, as a rule. One number that is extended is tested before that: consecutive numbers
// stay so if the narrow ones do not wrap, which the first of them tells. Several are added only if all are small.
//
// A quotient, as in `weights[i / columns]`, is tested for being the same in each part instead: then each is one load of
// one element.
//
// Rejected: an analysis that proves steps of 0 or 1 through min, max and remainders, so that the first and the last
// lane suffice. It knows some operations, this all of them; and the vector is there. A branch for each part: four times
// the code, and few parts fail where any pass.
//
// A number that is a pattern but at a border, as in `a[min(x / 2 + 1, n - 1)]`, is tested for the pattern
// (widener_likely_patterns.cpp).
//
// What threads exchange in threadgroup memory at a distance that a loop changes, as a butterfly's partners, is tested
// for permutations if its parts are not consecutive (widener_windows.cpp).
//
// Complexity: linear in the accesses; a block's tested sums are searched one by one, and there are at most kMostTested.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/vector_isa.h"
#include "compiler/vectorize/widener_checks.h"
#include "compiler/vectorize/widener_lane_accesses.h"
#include "compiler/vectorize/widener_lane_sums.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_pattern_accesses.h"
#include "compiler/vectorize/widener_strided.h"
#include "compiler/vectorize/widener_thread_code.h"

namespace kiln::widening {

/// Accesses of a function that are tested. Each has two paths, which bodies of hundreds of accesses would take long to
/// compile for.
inline constexpr unsigned kMostTestedAccesses = 48;

class RunTimeShapes {
 public:
  RunTimeShapes(ThreadCode& code, const LaneSums& lane_sums, AddressChecks& checks, StridedAccesses& strided,
                LaneAccesses& lane_accesses, PatternAccesses& pattern_accesses, Lanes& lanes)
      : flow_(code.flow),
        isa_(lanes.vector_isa()),
        strides_(code.strides),
        patterns_(code.patterns),
        lane_sums_(lane_sums),
        checks_(checks),
        strided_(strided),
        lane_accesses_(lane_accesses),
        pattern_accesses_(pattern_accesses),
        lanes_(lanes),
        layout_(lanes.layout()) {}

  /// Called once for each block, before the function is widened. Accesses that are taken belong to no group.
  void find(BasicBlock& block, function_ref<bool(Instruction&)> is_taken);

  /// False, and nothing is emitted, if the lanes cannot be consecutive or too many accesses have been tested.
  bool load(LoadInst& load, IRBuilder<>& builder);
  bool store(StoreInst& store, IRBuilder<>& builder);

  /// The same for stores that are emitted together, or `alone` where few lanes are active. True also for those that are
  /// emitted later, with the last one.
  bool store_group(StoreInst& store, function_ref<void(StoreInst&)> alone, IRBuilder<>& builder);

 private:
  // An access that consists of consecutive parts if the lanes' sums do.
  struct Shape {
    LaneSum address;
    std::optional<LaneSum> offset;  // what a divergent guard compares with `limit`; it has the terms of the address
    Value* allowed;                 // the guard; null: none
    Value* limit;                   // of a divergent guard
    uint64_t bytes;                 // from one element of the sum to the next
    unsigned part_lanes;
    bool is_load;
    const GlobalVariable* variable;  // of threadgroup memory, in which it is; null: unknown
    bool has_windows;                // is tested for permutations, too
    std::vector<Shape> others;       // of accesses beside it whose guards are others
  };

  // Whether lanes' sums are consecutive in each part, and the first of each.
  struct TestedSum {
    SmallVector<LaneTerm> terms;
    Value *numbers, *are_small;  // as sums_of() has them
    Value* condition;
    SmallVector<Value*> firsts;
    unsigned scope;  // in which it is known
  };

  // Whether lanes' numbers are a pattern, and the lowest one's number.
  struct TestedPattern {
    Value *number, *first, *condition;
    unsigned scope;  // in which it is known
  };

  // A sum, and what is added to its one number in all lanes, innermost last.
  struct PeeledSum {
    LaneSum inner;
    SmallVector<Instruction*> added;
  };

  // For each part, the elements from which its lanes come or to which they go.
  struct Windows {
    Value* condition;
    SmallVector<Value*> bases;   // the first number of each
    SmallVector<Value*> places;  // each lane's element of its window, as words
    Value* distance;             // a word: lanes less than so many apart are consecutive; null for a load
  };

  // Stores that follow one another, of the members of lanes' structures, and of those of the structures at a distance
  // that all lanes have. Either side is in the order of its addresses; `high` may be empty.
  struct Butterfly {
    SmallVector<Instruction*> low, high;
  };

  std::optional<Shape> shape_of(Instruction& access, Type* type, int64_t most_scale = 1);
  Value* without_terms(Value* value, IRBuilder<>& builder);
  std::pair<Value*, Value*> sums_of(const LaneSum& sum, IRBuilder<>& builder);
  const TestedSum& tested(const LaneSum& sum, unsigned width, IRBuilder<>& builder);
  TestedSum tested_and_extended(const LaneSum& sum, unsigned width, IRBuilder<>& builder);
  PeeledSum peeled(const LaneSum& sum) const;
  bool may_wrap(const LaneSum& sum) const;
  Value* extended(const LaneSum& sum, ArrayRef<Instruction*> added, MutableArrayRef<Value*> firsts, unsigned width,
                  bool may_wrap, IRBuilder<>& builder);
  Value* distance(const Shape& shape, const LaneSum& sum, Value* first, IRBuilder<>& builder) const;
  Values emit_by_shape(const Shape& shape, IRBuilder<>& builder, function_ref<Values(ArrayRef<Value*>)> in_parts,
                       Emitter scalarized);

  // Likely patterns (widener_likely_patterns.cpp).
  bool load_likely_pattern(LoadInst& load, IRBuilder<>& builder);
  std::pair<Value*, Value*> tested_pattern(Value* number, const Pattern& pattern, IRBuilder<>& builder);

  // Windows (widener_windows.cpp).
  bool store_if_tested(StoreInst& store, bool has_partner, IRBuilder<>& builder);
  bool has_windows(const Shape& shape, Value* address, Type* type) const;
  Windows windows_of(const Shape& shape, IRBuilder<>& builder);
  Values addresses_of(const Shape& shape, ArrayRef<Value*> firsts, IRBuilder<>& builder);
  Value* are_in_bounds(const Shape& shape, ArrayRef<Value*> firsts, Value* last, IRBuilder<>& builder);
  Value* fit(const Shape& shape, Windows& windows, IRBuilder<>& builder);
  Value* taken(ArrayRef<Value*> registers, Value* places, IRBuilder<>& builder);
  Values load_in_windows(ArrayRef<Instruction*> members, const Shape& shape, IRBuilder<>& builder, Emitter scalarized);
  Values load_members(ArrayRef<Instruction*> members, unsigned count, Value* address, Align alignment,
                      IRBuilder<>& builder);
  void store_in_windows(StoreInst& store, const Shape& shape, IRBuilder<>& builder, Emitter scalarized);
  void store_words(Value* words, Value* address, Value* mask, Align alignment, IRBuilder<>& builder);

  // Butterflies (widener_butterflies.cpp).
  void find_stores(BasicBlock& block, function_ref<bool(Instruction&)> is_taken);
  void find_loads(BasicBlock& block, function_ref<bool(Instruction&)> is_taken);
  std::optional<Butterfly> butterfly_of(ArrayRef<StoreInst*> stores);
  bool is_member(Instruction& access);
  std::optional<Shape> shape_of_members(ArrayRef<Instruction*> members);
  bool load_group(ArrayRef<Instruction*> members, IRBuilder<>& builder);
  void store_butterfly(const Butterfly& butterfly, IRBuilder<>& builder);
  void store_side(ArrayRef<Instruction*> side, bool has_partner, IRBuilder<>& builder);
  Value* words_of(Instruction& store, IRBuilder<>& builder);

  const StructuredFlow& flow_;
  const VectorIsa& isa_;
  Strides& strides_;
  AddressPatterns& patterns_;
  const LaneSums& lane_sums_;
  AddressChecks& checks_;
  StridedAccesses& strided_;
  LaneAccesses& lane_accesses_;
  PatternAccesses& pattern_accesses_;
  Lanes& lanes_;
  const DataLayout& layout_;
  SmallVector<TestedSum> tested_sums_;                 // in the scopes that are open
  SmallVector<TestedPattern> tested_patterns_;         // likewise
  unsigned num_tested_ = 0;                            // accesses
  DenseMap<const StoreInst*, Butterfly> butterflies_;  // by the store that emits all
  DenseSet<const StoreInst*> deferred_stores_;
  DenseMap<const Instruction*, SmallVector<Instruction*>> load_groups_;  // of structures' members, by the first
};

}  // namespace kiln::widening
