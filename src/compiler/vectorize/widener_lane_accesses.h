// Loads and stores whose lanes access memory each by itself: masked accesses, gathers and scatters where the processor
// has them for the element, otherwise loops over lanes. They are the slow path of all others.
//
// Processors gather words. A byte, or a half at an even address, is a part of the word in which it lies, which is
// shifted and narrowed: tables of bytes, pictures that are warped, clamped or mirrored, and halves that data choose
// take half of the time of a loop over lanes. (Stores of parts of words would write what other threads own.)
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <optional>

#include "compiler/ir/vector_isa.h"
#include "compiler/vectorize/widener_checks.h"
#include "compiler/vectorize/widener_guards.h"
#include "compiler/vectorize/widener_lane_scalars.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_scalarized.h"
#include "compiler/vectorize/widener_strides.h"

namespace kiln::widening {

class LaneAccesses {
 public:
  /// `has_barriers`: the function may be suspended, so that it calls no function that is shared by the module.
  LaneAccesses(bool has_barriers, Strides& strides, LaneScalars& lane_scalars, AddressChecks& checks,
               LaneLoops& lane_loops, Lanes& lanes)
      : has_barriers_(has_barriers),
        strides_(strides),
        lane_scalars_(lane_scalars),
        checks_(checks),
        lane_loops_(lane_loops),
        lanes_(lanes),
        layout_(lanes.layout()) {}

  /// Sets the load's vector.
  void load(LoadInst& load, IRBuilder<>& builder);
  void store(StoreInst& store, IRBuilder<>& builder);

  /// Whether a function shared by the whole module loads what the guard allows only in part.
  bool uses_tail_load(const LoadInst& load, const GuardedAddress& target);

 private:
  // Index `number` of the array at `base`, which is uniform.
  struct LaneIndex {
    Value *base, *number;
    bool is_signed;
  };

  /// Of a constant that registers hold (register_tables.h). Returns whether it is one.
  bool load_from_registers(LoadInst& load, const GuardedAddress& target, IRBuilder<>& builder);
  Value* gather_parts_of_words(LoadInst& load, Value* address, Value* mask, IRBuilder<>& builder);
  std::optional<LaneIndex> narrow_index_of(Value* address, uint64_t bytes) const;

  const bool has_barriers_;
  Strides& strides_;
  LaneScalars& lane_scalars_;
  AddressChecks& checks_;
  LaneLoops& lane_loops_;
  Lanes& lanes_;
  const DataLayout& layout_;
};

}  // namespace kiln::widening
