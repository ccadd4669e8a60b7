// Run-time checks that lanes access memory as one range: their addresses follow a stride or a pattern, and the guard
// allows all of them.
//
// A check is arithmetic of uniform values, so that function and loop versioning can hoist it. It guards a fast path,
// one access of vectors; the slow path is the caller's, as a rule the lanes' own accesses (widener_lane_accesses.h).
//
// Linear in the instructions of an address, for each check.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "compiler/ir/vector_isa.h"
#include "compiler/vectorize/widener_argument_bounds.h"
#include "compiler/vectorize/widener_guards.h"
#include "compiler/vectorize/widener_lane_scalars.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_thread_code.h"

namespace kiln::widening {

using EmitterAt = function_ref<Values(Value* address)>;

// The memory that the lanes access together.
struct AccessShape {
  uint64_t bytes;                 // of an element
  uint64_t reach;                 // from the lowest lane's address to the last accessed element
  bool is_exact;                  // only elements of some lane are accessed
  bool needs_full_mask = false;   // without a bounds check inactive lanes' elements must be known to be there
  unsigned lowest = 0;            // the lane with the lowest address
  bool slow_path_checks = false;  // the slow path itself handles a range that is out of bounds as a whole
  // Addresses of other accesses whose distance from the given one, in bytes, a narrow index might change by wrapping.
  SmallVector<std::pair<Value*, uint64_t>, 0> others = {};
};

// The run-time check that the lanes access memory as one range.
struct RangeCheck {
  Value *condition, *base;  // an i1; the address of the lowest lane
  Value *offset, *limit;    // of a divergent guard; else null
  bool is_active_only;      // the check covers active lanes only
};

// An address with its guard, of which `offset` and `limit` are null unless it is divergent.
struct BoundedAddress {
  Value *address, *allowed, *offset, *limit;
};

// The first and the last active lane.
struct ActiveLanes {
  Value *first, *last;
};

// The conditions of pieces that a check contains already.
using CheckedPieces = DenseMap<Instruction*, Value*>;

class AddressChecks {
 public:
  AddressChecks(ThreadCode& code, LaneScalars& lane_scalars, Lanes& lanes)
      : flow_(code.flow),
        isa_(lanes.vector_isa()),
        strides_(code.strides),
        wrapping_(code.wrapping),
        patterns_(code.patterns),
        argument_bounds_(code.function, lanes),
        lane_scalars_(lane_scalars),
        lanes_(lanes) {}

  // ---- Queries

  /// Whether the access is a masked vector access, whichever lanes are active.
  bool is_masked_access(Value* pointer, uint64_t bytes);
  /// Of numbers that are consecutive from lane to lane, whichever lanes are active: what the first lane has. Else null.
  Value* first_of_consecutive(Value* number, IRBuilder<>& builder);
  /// Whether the guard allows a contiguous part of a consecutive access, whatever the values are at run time.
  bool has_range_guard(const GuardedAddress& target, uint64_t bytes);

  // ---- Checks

  /// That the lanes' values follow their stride, from the first lane to the last. Only what is narrower than an address
  /// may wrap. The check is on the value from which the address is computed, so that one check serves accesses at
  /// constant distances.
  Value* check_stride(Value* value, IRBuilder<>& builder);
  /// That the lanes' offsets are below the limit, to the end of the reach, and follow their stride.
  Value* check_bounds(Value* offset, Value* limit, unsigned lowest, uint64_t reach, IRBuilder<>& builder);
  /// That the last active lane's address is `reach` bytes after the first one's, and both are in bounds. Then narrow
  /// numbers do not wrap in between either.
  Value* check_ends(const ActiveLanes& active, const BoundedAddress& target, Value* reach, IRBuilder<>& builder);
  /// Nothing if the lanes cannot access memory as one range, whatever their values are at run time.
  std::optional<RangeCheck> check_range(Value* pointer, Value* allowed, const AccessShape& shape, IRBuilder<>& builder);
  /// Whether a range that fails the check is out of bounds as a whole, such as pixels beyond an image's border: loads
  /// return zero. Null if that is unknown.
  Value* is_outside(const RangeCheck& check, const AccessShape& shape, IRBuilder<>& builder);

  /// Accesses memory as one range if the lanes follow their pattern and the guard allows all of them.
  /// `vectorized(address)` and `scalarized()` emit the fast and the slow path, and phis merge what they return.
  Values emit_by_shape(Value* pointer, Value* allowed, const AccessShape& shape, IRBuilder<>& builder,
                       EmitterAt vectorized, Emitter scalarized);

  // ---- Parts of checks

  ActiveLanes active_lanes(IRBuilder<>& builder);
  /// A guard's limit, or `end` if that is less, minus the reach of an access. Emitted once, at the limit's definition,
  /// since many checks use it.
  Value* reduced_limit(Value* limit, uint64_t reach, std::optional<uint64_t> end = std::nullopt);
  /// The lanes in which a comparison of a number that has a stride, such as an access's offset or a column, with a
  /// uniform limit, such as a size, holds: all between two lanes, or all but those. Null if that is unknown. Otherwise
  /// vectors of numbers would have to be created and compared.
  Value* lanes_below(CmpInst& comparison, IRBuilder<>& builder);

 private:
  Value* check_stride(Value* value, CheckedPieces& checked, IRBuilder<>& builder);
  Value* check_bounds(Value* offset, Value* limit, unsigned lowest, uint64_t reach, CheckedPieces& checked,
                      IRBuilder<>& builder);
  Value* check_wrapping(Value* value, IRBuilder<>& builder);
  Value* check_distance(Value* lowest, Value* other, uint64_t distance, IRBuilder<>& builder);
  Value* check_pieces(Value* value, CheckedPieces& checked, IRBuilder<>& builder);
  Value* check_piece(Instruction& instruction, CheckedPieces& checked, IRBuilder<>& builder);
  Value* lanes_between(Value* before, Value* below, IRBuilder<>& builder);
  Value* narrow_lanes_below(CmpInst& comparison, IRBuilder<>& builder);
  Value* check_inactive_lanes(Value* pointer, Value* base, const AccessShape& shape, IRBuilder<>& builder);

  const StructuredFlow& flow_;
  const VectorIsa& isa_;
  Strides& strides_;
  Wrapping& wrapping_;
  AddressPatterns& patterns_;
  ArgumentBounds argument_bounds_;
  LaneScalars& lane_scalars_;
  Lanes& lanes_;
  std::map<std::tuple<Value*, uint64_t, std::optional<uint64_t>>, Value*> reduced_limits_;
};

}  // namespace kiln::widening
