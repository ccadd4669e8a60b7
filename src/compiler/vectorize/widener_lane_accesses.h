// Loads and stores whose lanes access memory each by itself: masked accesses, gathers and scatters where the processor
// has them for the element, otherwise loops over lanes. They are the slow path of all others.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

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
      : isa_(lanes.vector_isa()),
        has_barriers_(has_barriers),
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
  void load_beside_border(LoadInst& load, IRBuilder<>& builder);

  const VectorIsa& isa_;
  const bool has_barriers_;
  Strides& strides_;
  LaneScalars& lane_scalars_;
  AddressChecks& checks_;
  LaneLoops& lane_loops_;
  Lanes& lanes_;
  const DataLayout& layout_;
};

}  // namespace kiln::widening
