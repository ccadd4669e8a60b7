// Lanes' addresses in a matrix: a uniform base plus, for each lane, a constant and a constant number of rows, whose
// distance may be known at run time only.
//
// It reads the thread's code and changes nothing. An address is followed through 12 operations in a row at most.
#pragma once

#include <llvm/IR/Instructions.h>

#include <array>
#include <cstdint>
#include <optional>

#include "compiler/ir/simdgroup.h"
#include "compiler/vectorize/widener_thread_code.h"

namespace kiln::widening {

/// The largest offset of a lane, in bytes and in rows.
inline constexpr uint64_t kMaxTileOffset = 1 << 16;

// Lanes' addresses: a uniform base plus `offsets[lane] + rows[lane] * pitch`. `pitch` is uniform, or null. Wraps at
// 64 bits only.
struct LaneOffsets {
  std::array<uint64_t, kLanes> offsets{}, rows{};
  Value* pitch = nullptr;

  bool operator==(const LaneOffsets&) const = default;
};

class TileAddresses {
 public:
  explicit TileAddresses(ThreadCode& code)
      : flow_(code.flow),
        layout_(code.layout),
        strides_(code.strides),
        wrapping_(code.wrapping),
        patterns_(code.patterns) {}

  /// Of a load or a store. Its guard must compare an offset with the same lane offsets. Nothing for addresses with a
  /// stride: such accesses are strided.
  std::optional<LaneOffsets> lane_offsets_of_access(Instruction& access);

 private:
  // Of an address or a 64-bit number.
  std::optional<LaneOffsets> lane_offsets_of(Value* value, unsigned depth = 0);

  const StructuredFlow& flow_;
  const DataLayout& layout_;
  Strides& strides_;
  Wrapping& wrapping_;
  AddressPatterns& patterns_;
};

}  // namespace kiln::widening
