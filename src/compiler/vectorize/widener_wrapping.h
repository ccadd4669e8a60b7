// Whether values follow their strides and patterns whichever lanes are active, because nothing in them can wrap.
//
// Numbers of 64 bits and addresses wrap as the distances between lanes do. A narrower one must be known to be small, or
// lie in an exact range. Flags such as `nsw` hold in active lanes only and count for nothing here.
//
// It reads the thread's code and changes nothing. Ranges are kept; a number is followed through kRangeDepth operations.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PointerIntPair.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/DataLayout.h>

#include <cstdint>
#include <optional>

#include "compiler/analysis/structured_flow.h"
#include "compiler/vectorize/widener_strides.h"

namespace kiln::widening {

/// Whether it cannot wrap unless its operands do. Addresses wrap as their distances do.
bool wraps_only_with_operands(const Instruction& instruction, bool in_any_width = false);

class Wrapping {
 public:
  Wrapping(const StructuredFlow& flow, ScalarEvolution& evolution, const DataLayout& layout, Strides& strides)
      : flow_(flow), evolution_(evolution), layout_(layout), strides_(strides) {}

  /// Whether the value follows its stride or pattern, whatever other values are.
  bool never_wraps(Value* value) { return never_wraps(value, /*pieces_hold=*/false); }
  /// Whether it does wherever all lanes are on the sides of its pieces, as a check has found out: those have ranges, as
  /// `min(i, 99)` has, and what is computed from them has, too.
  bool never_wraps_with_pieces(Value* value) { return never_wraps(value, /*pieces_hold=*/true); }

  /// Whether it does modulo its own width, where all lanes are on the sides of its pieces: nothing in it is extended.
  bool wraps_as_a_whole(Value* value) {
    SmallPtrSet<Instruction*, 16> seen;
    return wraps_as_a_whole(value, seen);
  }

  /// Where numbers end that are extended to an access's offset, in its unit. An offset below that, less the reach of
  /// the lanes, is one of lanes that do not wrap.
  std::optional<uint64_t> end_of_extension(Value* offset);
  /// The same for one lane: below it, less a distance, the number plus the distance does not wrap.
  static std::optional<uint64_t> end_in_a_lane(Value* offset);

 private:
  // Both ends are in it.
  struct Interval {
    int64_t least, most;
  };

  bool wraps_as_a_whole(Value* value, SmallPtrSetImpl<Instruction*>& seen);
  bool has_uniform_sign(Value* value) const;
  bool is_small_sum(const Instruction& instruction) const;
  bool never_wraps(Value* value, bool pieces_hold);
  std::optional<Interval> exact_range(Value* value, bool pieces_hold, unsigned depth = 0);
  std::optional<Interval> computed_range(Value* value, bool pieces_hold, unsigned depth);
  std::optional<Interval> range_of_piece(Instruction& instruction, unsigned depth);

  const StructuredFlow& flow_;
  ScalarEvolution& evolution_;  // of the thread's code
  const DataLayout& layout_;
  Strides& strides_;
  DenseMap<PointerIntPair<Value*, 1, bool>, std::optional<Interval>> exact_ranges_;  // whether pieces hold
};

}  // namespace kiln::widening
