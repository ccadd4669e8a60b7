// Instructions that run for one lane after the other: in a loop over the mask's lanes, with operands and results in
// memory, or as scalars if the lanes are known and few.
//
// A postponed operand is computed in the loop, from the lane index if possible: that is shorter than vectors of
// addresses. Linear in the instructions of the operands.
#pragma once

#include <llvm/ADT/MapVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include "compiler/vectorize/widener_atomic_memory.h"
#include "compiler/vectorize/widener_lane_scalars.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_scratch.h"

namespace kiln::widening {

/// Refuses an instruction whose result is a structure, but for one of two values whose uses are extractions.
void check_pair(Instruction& instruction);

class LaneLoops {
 public:
  // Vectors in memory, by the value.
  using Slots = MapVector<Value*, AllocaInst*>;

  LaneLoops(LaneScalars& lane_scalars, Scratch& scratch, AtomicMemory& atomic_memory, Lanes& lanes)
      : lane_scalars_(lane_scalars), scratch_(scratch), atomic_memory_(atomic_memory), lanes_(lanes) {}

  /// Runs the instruction for each lane of the mask, and sets its vector. `may_be_exclusive`: the caller has not
  /// handled exclusive launches yet.
  void for_each_lane(Instruction& instruction, IRBuilder<>& builder, bool may_be_exclusive = true);

  /// A load or store of very few lanes that are known, as of a tile's border in threadgroups whose rows are shorter
  /// than a simdgroup: scalars, in the order of lanes. False for others.
  bool access_few_lanes(Instruction& access, IRBuilder<>& builder);

  // ---- Parts of loops over lanes

  /// Stores the vectors that a loop over lanes needs to compute the value.
  void store_leaves(Value* value, Slots& slots, IRBuilder<>& builder);
  /// The value in the loop's lane.
  Value* at_lane_of_loop(Value* value, Value* lane, const Slots& slots, IRBuilder<>& builder);

 private:
  void for_one_lane(unsigned lane, Instruction& instruction, IRBuilder<>& builder, bool may_be_exclusive);

  LaneScalars& lane_scalars_;
  Scratch& scratch_;
  AtomicMemory& atomic_memory_;
  Lanes& lanes_;
};

}  // namespace kiln::widening
