// Loads and stores whose addresses follow a pattern: a few strips of lanes, or a few elements of which each lane takes
// one. Such accesses would be gathers or loops over lanes otherwise.
//
// Linear in the registers of a simdgroup, for each of three lengths of a strip.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <optional>

#include "compiler/ir/vector_isa.h"
#include "compiler/vectorize/widener_checks.h"
#include "compiler/vectorize/widener_lane_accesses.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_patterns.h"
#include "compiler/vectorize/widener_strided.h"

namespace kiln::widening {

class PatternAccesses {
 public:
  PatternAccesses(AddressPatterns& patterns, AddressChecks& checks, StridedAccesses& strided,
                  LaneAccesses& lane_accesses, Lanes& lanes)
      : isa_(lanes.vector_isa()),
        patterns_(patterns),
        checks_(checks),
        strided_(strided),
        lane_accesses_(lane_accesses),
        lanes_(lanes),
        layout_(lanes.layout()) {}

  /// False, and nothing is emitted, if the addresses have no pattern that is worth it.
  bool load(LoadInst& load, IRBuilder<>& builder);
  bool store(StoreInst& store, IRBuilder<>& builder);

  // Elements in a row, and which of them each of some lanes takes.
  struct Window {
    uint64_t first, count;
    SmallVector<unsigned> elements;

    bool operator==(const Window&) const = default;
  };

  // A pattern's lanes in pieces of so many consecutive lanes.
  struct Pieces {
    unsigned length;
    SmallVector<Window> windows;
    bool are_strips;  // whether each piece is `length` elements in a row, in the order of lanes
    unsigned cost;    // loads and permutations
  };

  /// How a load's lanes are loaded if their addresses follow the pattern. Nothing where a gather or loop is cheaper, or
  /// if elements overlap.
  std::optional<Pieces> pieces_of(const LoadInst& load, const Pattern& pattern) const;

  /// All lanes' elements: `address` is the lowest lane's.
  Value* load_pieces(const LoadInst& load, const Pieces& pieces, bool is_masked, Value* address, IRBuilder<>& builder);

 private:
  std::optional<Pieces> pieces_of(const Pattern& pattern, uint64_t bytes, unsigned most_cost) const;
  Value* load_window(const LoadInst& load, const Window& window, Value* address, IRBuilder<>& builder);
  // The same for elements of 1 and 2 bytes from many registers: the words that have them, shifted and narrowed.
  Value* load_narrow_window(const LoadInst& load, const Window& window, Value* address, IRBuilder<>& builder);
  bool takes_words(const Window& window, uint64_t bytes) const {
    return bytes < sizeof(uint32_t) && window.count > 2 * isa_.num_elements(bytes);
  }

  const VectorIsa& isa_;
  AddressPatterns& patterns_;
  AddressChecks& checks_;
  StridedAccesses& strided_;
  LaneAccesses& lane_accesses_;
  Lanes& lanes_;
  const DataLayout& layout_;
};

}  // namespace kiln::widening
