// Atomic operations.
//
// A launch that one thread of the process runs, and threadgroup memory, need no atomics: consecutive updates become
// vector loads and stores. Otherwise a function that chooses the fastest method updates consecutive floats
// (targets/cpu/row_updates.h). If a launch's code does nothing else with an output, this is a lock for the whole range.
// If lanes of such an update turn out not to be consecutive, each of them takes the lock, too.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <optional>

#include "compiler/ir/striped_atomics.h"
#include "compiler/vectorize/widener_atomic_memory.h"
#include "compiler/vectorize/widener_checks.h"
#include "compiler/vectorize/widener_guards.h"
#include "compiler/vectorize/widener_lane_scalars.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_scalarized.h"
#include "compiler/vectorize/widener_scratch.h"
#include "compiler/vectorize/widener_strides.h"

namespace kiln::widening {

class Atomics {
 public:
  Atomics(Strides& strides, LaneScalars& lane_scalars, AddressChecks& checks, AtomicMemory& atomic_memory,
          LaneLoops& lane_loops, Scratch& scratch, Lanes& lanes)
      : strides_(strides),
        lane_scalars_(lane_scalars),
        checks_(checks),
        atomic_memory_(atomic_memory),
        lane_loops_(lane_loops),
        scratch_(scratch),
        lanes_(lanes),
        layout_(lanes.layout()) {}

  /// Sets the operation's vector if there is a result.
  void widen(AtomicRMWInst& atomic, IRBuilder<>& builder);

 private:
  void widen_unguarded(AtomicRMWInst& atomic, IRBuilder<>& builder);
  bool combine_lanes(AtomicRMWInst& atomic, IRBuilder<>& builder);
  Values emit_combined(AtomicRMWInst& atomic, IRBuilder<>& builder);
  bool is_striped_range(AtomicRMWInst& atomic, Value* pointer);
  Value* update_exclusive(AtomicRMWInst& atomic, Value* address, IRBuilder<>& builder);
  void update_guarded_range(AtomicRMWInst& atomic, const GuardedAddress& target, IRBuilder<>& builder);
  void update_shared_range(AtomicRMWInst& atomic, Value* address, const std::optional<RangeGuard>& guard,
                           IRBuilder<>& builder);
  void update_shared_checked(AtomicRMWInst& atomic, IRBuilder<>& builder);

  Strides& strides_;
  LaneScalars& lane_scalars_;
  AddressChecks& checks_;
  AtomicMemory& atomic_memory_;
  LaneLoops& lane_loops_;
  Scratch& scratch_;
  Lanes& lanes_;
  const DataLayout& layout_;
};

}  // namespace kiln::widening
