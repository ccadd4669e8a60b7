// Address patterns: lanes' values that are a uniform number plus a constant for each lane, where the constants have no
// stride, as in lanes that share a word, go backwards, or are the rows of a tile.
//
// It reads the thread's code and changes nothing. Linear in the instructions of an address, for each query; a likely
// pattern is looked for through a limited number of operations.
#pragma once

#include <llvm/IR/DataLayout.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "compiler/analysis/structured_flow.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/vectorize/widener_strides.h"
#include "compiler/vectorize/widener_wrapping.h"

namespace kiln::widening {

// The arithmetic may wrap.
struct Pattern {
  std::array<uint64_t, kLanes> offsets;  // from the lowest lane's value
  unsigned lowest, highest;              // lanes

  bool operator==(const Pattern&) const = default;
};

/// Whether elements at the offsets are in a row.
bool are_consecutive(ArrayRef<uint64_t> offsets, uint64_t bytes);

/// The most lanes of a power of two, from 16 to 4, of which each group is consecutive, as in rows of a tile. 0: there
/// are none.
unsigned strip_of(const Pattern& pattern, uint64_t bytes);

class AddressPatterns {
 public:
  AddressPatterns(const StructuredFlow& flow, const DataLayout& layout, Strides& strides, Wrapping& wrapping)
      : flow_(flow), layout_(layout), strides_(strides), wrapping_(wrapping) {}

  std::optional<Pattern> pattern_of(Value* value);

  /// The pattern that a number mostly has: as if no lane were at a border, where a minimum, maximum, select or
  /// remainder takes another value, and nothing wrapped. It is to be tested when the code runs.
  std::optional<Pattern> likely_pattern_of(Value* number, unsigned depth = 0);

  /// Whether both values have the same differences between lanes, but for wrapping.
  bool have_equal_strides(Value* one, Value* other);

 private:
  std::optional<Pattern> sum_of_patterns(Value* one, Value* other);
  std::pair<Value*, int64_t> likely_constant_added(Value* number) const;
  std::optional<std::array<int64_t, kLanes>> likely_residues(Value* number, unsigned bits, unsigned depth);

  const StructuredFlow& flow_;
  const DataLayout& layout_;
  Strides& strides_;
  Wrapping& wrapping_;
};

}  // namespace kiln::widening
