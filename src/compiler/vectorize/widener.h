// Implements widen() (vectorize/widen.h): one thread's instructions become vector instructions of a simdgroup.
//
// Widener gives each instruction to one of its parts. A part has a header that says what it owns and what others may
// call; it takes the parts that it calls as arguments of its constructor, and none takes the Widener. They are built in
// this order, so that each calls only parts above it:
//
//   analyses of the thread's code, which change nothing (ThreadCode has them)
//     guards, lane_values   an access's guard; what each lane's number is at compile time (functions)
//     strides               differences between adjacent lanes; pieces, which have a stride but at borders
//     wrapping              whether values follow their strides whichever lanes are active
//     patterns              constant differences between lanes
//   the function that is made
//     lanes                 what values have become; the mask; branches on uniform conditions
//     flow                  blocks, masks, phis
//     lane_scalars          the scalar that one lane has
//     checks                run-time checks that lanes access memory as one range
//     scratch               stack memory
//     arithmetic            with division and conversions
//     collectives           with matrices
//   lane by lane
//     atomic_memory         what is known of the memory that atomics update
//     scalarized            loops over lanes
//     atomics               atomic operations
//   memory                  variables, loads, stores: the order in which the forms of an access are tried, and the
//   forms,
//                           which it owns
//     lane_sums             addresses as sums of uniform values and of numbers that differ between lanes (analysis)
//     tile_addresses        addresses in rows of a matrix (analysis)
//     access_groups         accesses at constant distances (functions)
//     strided               ranges in registers
//     lane_accesses         gathers, scatters, masked accesses: the slow path of the others
//     tiles                 rows of a few lanes each
//     interleaved           members of structures, and of records at indices that data choose (records)
//     shared_checks         loads at constant distances with one bounds check
//     zeros                 selects between a loaded value and zero
//     pattern_accesses      a few strips, or elements that lanes share
//     compressed            stores of the lanes that want to
//     run_time_shapes       accesses that are tested for being consecutive, or permuted, when the code runs
//
// There are two calls against the order, both by a function that is passed: lanes computes the vector of a postponed
// value by arithmetic, and a tile that is out of bounds in part stores single accesses, of any form.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/PassManager.h>

#include "compiler/ir/vector_isa.h"
#include "compiler/vectorize/widen.h"
#include "compiler/vectorize/widener_arithmetic.h"
#include "compiler/vectorize/widener_atomic_memory.h"
#include "compiler/vectorize/widener_atomics.h"
#include "compiler/vectorize/widener_checks.h"
#include "compiler/vectorize/widener_collectives.h"
#include "compiler/vectorize/widener_flow.h"
#include "compiler/vectorize/widener_lane_scalars.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_memory.h"
#include "compiler/vectorize/widener_scalarized.h"
#include "compiler/vectorize/widener_scratch.h"
#include "compiler/vectorize/widener_thread_code.h"

// Private to the widener*.cpp files, which use little but LLVM's types.
namespace kiln::widening {

class Widener {
 public:
  Widener(Function& from, Function& to, FunctionAnalysisManager& analyses, const WidenOptions& options);

  /// Throws Refusal.
  void run();

 private:
  void widen_instruction(Instruction& instruction, IRBuilder<>& builder);
  void widen_one(Instruction& instruction, IRBuilder<>& builder);
  void copy_load(LoadInst& load, IRBuilder<>& builder);
  void copy(Instruction& instruction, IRBuilder<>& builder);
  bool can_be_postponed(Instruction& instruction);

  ThreadCode code_;
  Lanes lanes_;
  ControlFlow blocks_;
  LaneScalars lane_scalars_;
  AddressChecks checks_;
  Scratch scratch_;
  Arithmetic arithmetic_;
  Collectives collectives_;
  AtomicMemory atomic_memory_;
  LaneLoops lane_loops_;
  Atomics atomics_;
  MemoryAccesses memory_;
};

}  // namespace kiln::widening
