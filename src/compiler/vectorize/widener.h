// Implements widen() (vectorize/widen.h): one thread's instructions become vector instructions of a simdgroup.
//
// Widener is one class, since each part needs the masks and vectors of the others. Each file covers one subject:
//
//   widener.cpp                   operands and arithmetic
//   widener_division.cpp          integer division
//   widener_conversions.cpp       floating-point numbers to integers
//   widener_flow.cpp              blocks, masks, phis
//   widener_consecutive.cpp       values with a constant stride from lane to lane
//   widener_address_patterns.cpp  values with constant differences between lanes
//   widener_memory.cpp            variables, loads, stores
//   widener_atomics.cpp           atomic operations
//   widener_piecewise.cpp         indices that have a stride in all simdgroups but those at a border
//   widener_lane_sums.cpp         addresses as sums of uniform values and of numbers that differ between lanes
//   widener_run_time_shapes.cpp   accesses that are tested for being consecutive when the code runs
//   widener_zeros.cpp             selects between a loaded value and zero
//   widener_interleaved.cpp       interleaved accesses to members of structures
//   widener_shared_checks.cpp     loads at constant distances with one bounds check
//   widener_tiles.cpp             loads and stores of matrices: rows of a few lanes each
//   widener_collectives.cpp       collectives and barriers
//   widener_matrices.cpp          matrix products
//   widener_scalarized.cpp        instructions that run one lane after the other
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/analysis/structured_flow.h"
#include "compiler/ir/convergence_point.h"
#include "compiler/ir/lane_operations.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/ir/striped_atomics.h"
#include "compiler/vectorize/widen.h"
#include "compiler/vectorize/widener_atomic_memory.h"
#include "compiler/vectorize/widener_atomics.h"
#include "compiler/vectorize/widener_checks.h"
#include "compiler/vectorize/widener_compressed.h"
#include "compiler/vectorize/widener_flow.h"
#include "compiler/vectorize/widener_guards.h"
#include "compiler/vectorize/widener_interleaved.h"
#include "compiler/vectorize/widener_lane_accesses.h"
#include "compiler/vectorize/widener_lane_scalars.h"
#include "compiler/vectorize/widener_lane_sums.h"
#include "compiler/vectorize/widener_lane_values.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_pattern_accesses.h"
#include "compiler/vectorize/widener_patterns.h"
#include "compiler/vectorize/widener_run_time_shapes.h"
#include "compiler/vectorize/widener_scalarized.h"
#include "compiler/vectorize/widener_scratch.h"
#include "compiler/vectorize/widener_shared_checks.h"
#include "compiler/vectorize/widener_strided.h"
#include "compiler/vectorize/widener_strides.h"
#include "compiler/vectorize/widener_tile_addresses.h"
#include "compiler/vectorize/widener_tiles.h"
#include "compiler/vectorize/widener_wrapping.h"
#include "compiler/vectorize/widener_zeros.h"

namespace kiln {

// Private to the widener*.cpp files, which use little but LLVM's types.
namespace widening {

using namespace llvm;

class Widener {
 public:
  Widener(Function& from, Function& to, FunctionAnalysisManager& analyses, const WidenOptions& options);

  /// Throws Refusal.
  void run();

 private:
  // ---- Operands and arithmetic

  bool can_be_postponed(Instruction& instruction);
  void widen_instruction(Instruction& instruction, IRBuilder<>& builder);
  void widen_one(Instruction& instruction, IRBuilder<>& builder);
  void copy(Instruction& instruction, IRBuilder<>& builder);
  Value* widen_arithmetic(Instruction& instruction, IRBuilder<>& builder);
  Value* widen_division(BinaryOperator& division, IRBuilder<>& builder);
  Value* without_zeros(Value* divisor, IRBuilder<>& builder, unsigned depth = 0);
  Value* zero_unless(Instruction& select, IRBuilder<>& builder);
  Value* widen_saturating_conversion(IntrinsicInst& call, IRBuilder<>& builder);
  void widen_checked(WithOverflowInst& call, IRBuilder<>& builder);
  Value* widen_intrinsic(IntrinsicInst& call, IRBuilder<>& builder);

  // ---- Memory

  void widen_variable(AllocaInst& variable);
  void widen_load(LoadInst& load, IRBuilder<>& builder);
  void widen_single_load(LoadInst& load, IRBuilder<>& builder);
  void widen_store(StoreInst& store, IRBuilder<>& builder);
  void note_scattered(const Instruction& access, Value* address);
  void widen_single_store(StoreInst& store, IRBuilder<>& builder);

  // ---- Collectives

  Value* multiply(CallInst& call, IRBuilder<>& builder);
  void widen_convergence_point(CallInst& call, unsigned point, IRBuilder<>& builder);
  void widen_collective(CallInst& call, LaneOperation operation, IRBuilder<>& builder);
  Value* permuted(Value* lanes, Value* sources, IRBuilder<>& builder);

  const VectorIsa& isa_;
  const ArrayRef<ConvergencePoint> convergence_points_;
  Function& from_;
  StructuredFlow flow_;
  LoopInfo& loops_;
  ScalarEvolution& evolution_;  // of `from_`
  const DataLayout& layout_;
  Strides strides_;
  Wrapping wrapping_;
  AddressPatterns patterns_;
  LaneSums lane_sums_;
  TileAddresses tile_addresses_;
  Lanes lanes_;
  ControlFlow blocks_;
  LaneScalars lane_scalars_;
  AddressChecks checks_;
  StridedAccesses strided_;
  Scratch scratch_;
  AtomicMemory atomic_memory_;
  LaneLoops lane_loops_;
  Atomics atomics_;
  LaneAccesses lane_accesses_;
  Tiles tiles_;
  InterleavedAccesses interleaved_;
  SharedChecks shared_checks_;
  ZeroedLoads zeroed_loads_;
  PatternAccesses pattern_accesses_;
  CompressedStores compressed_;
  RunTimeShapes run_time_shapes_;
};

}  // namespace widening
}  // namespace kiln
