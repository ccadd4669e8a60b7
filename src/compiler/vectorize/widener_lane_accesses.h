// Loads and stores whose lanes access memory each by itself: masked accesses, gathers and scatters where the processor
// has them for the element, otherwise loops over lanes. They are the slow path of all others.
//
// Processors gather words. Where gathers always pay (ir/vector_isa.h), a byte, or a half at an even address, is a part
// of the word in which it lies, which is shifted and narrowed: tables of bytes, pictures that are warped, clamped or
// mirrored, and halves that data choose take half of the time of a loop over lanes. (Stores of parts of words would
// write what other threads own.)
//
// A gather takes as long for one lane as for all. Where gathers do not always pay, in a loop that lanes leave one after
// the other, as a search is, the last few lanes load one by one.
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
#include "compiler/vectorize/widener_thread_code.h"

namespace kiln::widening {

class LaneAccesses {
 public:
  /// `has_barriers`: the function may be suspended, so that it calls no function that is shared by the module.
  LaneAccesses(ThreadCode& code, bool has_barriers, LaneScalars& lane_scalars, AddressChecks& checks,
               LaneLoops& lane_loops, Lanes& lanes)
      : loops_(code.loops),
        flow_(code.flow),
        has_barriers_(has_barriers),
        strides_(code.strides),
        lane_scalars_(lane_scalars),
        checks_(checks),
        lane_loops_(lane_loops),
        lanes_(lanes),
        layout_(lanes.layout()) {}

  /// Sets the load's vector.
  void load(LoadInst& load, IRBuilder<>& builder);
  void store(StoreInst& store, IRBuilder<>& builder);
  /// False, and nothing is emitted, unless few lanes are known to be active.
  bool load_few_lanes(LoadInst& load, IRBuilder<>& builder) { return lane_loops_.access_few_lanes(load, builder); }

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
  bool may_have_few_lanes(const LoadInst& load) const;
  Value* gather(LoadInst& load, Value* address, Value* mask, IRBuilder<>& builder);
  Value* gather_parts_of_words(LoadInst& load, Value* address, Value* mask, IRBuilder<>& builder);
  std::optional<LaneIndex> narrow_index_of(Value* address, uint64_t bytes) const;

  const LoopInfo& loops_;
  const StructuredFlow& flow_;
  const bool has_barriers_;
  Strides& strides_;
  LaneScalars& lane_scalars_;
  AddressChecks& checks_;
  LaneLoops& lane_loops_;
  Lanes& lanes_;
  const DataLayout& layout_;
};

}  // namespace kiln::widening
