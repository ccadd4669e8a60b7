// Variables, loads and stores: which form an access takes. The forms are tried in the order of what they cost; each
// says whether it has taken the access, and what none has taken the lanes access one by one.
//
//   accesses that are emitted together: tiles, shared checks, interleaved members
//   one thread's access: of zero or a load, of few lanes, with a stride, with a pattern, compressed, tested at run time
//
// Constant time for each access, but for what the forms emit.
#pragma once

#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include "compiler/analysis/structured_flow.h"
#include "compiler/ir/vector_isa.h"
#include "compiler/vectorize/widener_checks.h"
#include "compiler/vectorize/widener_compressed.h"
#include "compiler/vectorize/widener_interleaved.h"
#include "compiler/vectorize/widener_lane_accesses.h"
#include "compiler/vectorize/widener_lane_scalars.h"
#include "compiler/vectorize/widener_lane_sums.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_pattern_accesses.h"
#include "compiler/vectorize/widener_run_time_shapes.h"
#include "compiler/vectorize/widener_scalarized.h"
#include "compiler/vectorize/widener_scratch.h"
#include "compiler/vectorize/widener_shared_checks.h"
#include "compiler/vectorize/widener_strided.h"
#include "compiler/vectorize/widener_thread_code.h"
#include "compiler/vectorize/widener_tile_addresses.h"
#include "compiler/vectorize/widener_tiles.h"
#include "compiler/vectorize/widener_zeros.h"

namespace kiln::widening {

class MemoryAccesses {
 public:
  /// Finds the accesses that are emitted together, and moves their addresses to the first of them.
  MemoryAccesses(ThreadCode& code, bool has_barriers, LaneScalars& lane_scalars, AddressChecks& checks,
                 LaneLoops& lane_loops, Scratch& scratch, Lanes& lanes);

  void widen_variable(AllocaInst& variable);
  void widen_load(LoadInst& load, IRBuilder<>& builder);
  void widen_store(StoreInst& store, IRBuilder<>& builder);

  /// Whether the instruction is emitted with a later one.
  bool is_deferred(const Instruction& instruction) const {
    return zeroed_loads_.is_sunk(instruction) || tiles_.is_deferred(instruction);
  }
  /// Called before each instruction that is not deferred: emits loads that were sunk to it.
  void emit_operands_of(Instruction& instruction, IRBuilder<>& builder) {
    zeroed_loads_.emit_sunk_loads(instruction, builder);
  }

 private:
  void widen_single_load(LoadInst& load, IRBuilder<>& builder);
  void widen_single_store(StoreInst& store, IRBuilder<>& builder);
  void widen_store_alone(StoreInst& store, IRBuilder<>& builder);
  void note_scattered(const Instruction& access, Value* address);

  Strides& strides_;
  AddressChecks& checks_;
  LaneLoops& lane_loops_;
  Lanes& lanes_;
  const DataLayout& layout_;
  // What only accesses to memory need.
  LaneSums lane_sums_;
  TileAddresses tile_addresses_;
  StridedAccesses strided_;
  LaneAccesses lane_accesses_;
  Tiles tiles_;
  InterleavedAccesses interleaved_;
  SharedChecks shared_checks_;
  ZeroedLoads zeroed_loads_;
  PatternAccesses pattern_accesses_;
  CompressedStores compressed_;
  RunTimeShapes run_time_shapes_;
};

}  // namespace kiln::widening
