// Stores to compressed places: `if (wanted) out[base + popcount(votes & ((1 << lane) - 1))] = value`, where `votes` are
// the lanes that want to. The active lanes' elements are consecutive, in the order of lanes, so a register's elements
// are compressed and stored as one vector. Otherwise this is a scatter, of indices that are counted for each lane.
//
// The analysis finds addresses that differ between lanes by what a population count says; whether the counted votes are
// the active lanes is compared at run time, which is one comparison of 32 bits. Rejected: to compress the indices of
// any scatter and to see whether they are consecutive, which serves more code, but needs the indices, whose population
// counts take half of the time.
//
// Linear in the depth of an address: no operation is followed into more than one divergent operand.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <optional>

#include "compiler/analysis/structured_flow.h"
#include "compiler/ir/vector_isa.h"
#include "compiler/vectorize/widener_checks.h"
#include "compiler/vectorize/widener_lane_accesses.h"
#include "compiler/vectorize/widener_lane_scalars.h"
#include "compiler/vectorize/widener_lanes.h"

namespace kiln::widening {

class CompressedStores {
 public:
  CompressedStores(const StructuredFlow& flow, LaneScalars& lane_scalars, AddressChecks& checks,
                   LaneAccesses& lane_accesses, Lanes& lanes)
      : flow_(flow),
        isa_(lanes.vector_isa()),
        lane_scalars_(lane_scalars),
        checks_(checks),
        lane_accesses_(lane_accesses),
        lanes_(lanes),
        layout_(lanes.layout()) {}

  /// False, and nothing is emitted, if the store is none of these, or the processor compresses no vectors.
  bool store(StoreInst& store, IRBuilder<>& builder);

 private:
  // A uniform value plus, for each lane, `distance` times the number of votes for lanes before it.
  struct Rank {
    Value* votes;  // uniform: a bit for each lane
    uint64_t distance;
  };

  std::optional<Rank> rank_of(Value* value, unsigned depth = 0) const;
  Value* first_lanes(Value* count, unsigned width, IRBuilder<>& builder) const;

  const StructuredFlow& flow_;
  const VectorIsa& isa_;
  LaneScalars& lane_scalars_;
  AddressChecks& checks_;
  LaneAccesses& lane_accesses_;
  Lanes& lanes_;
  const DataLayout& layout_;
};

}  // namespace kiln::widening
