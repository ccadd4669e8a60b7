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
#include "compiler/vectorize/widener_checks.h"
#include "compiler/vectorize/widener_flow.h"
#include "compiler/vectorize/widener_guards.h"
#include "compiler/vectorize/widener_lane_scalars.h"
#include "compiler/vectorize/widener_lane_sums.h"
#include "compiler/vectorize/widener_lane_values.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_patterns.h"
#include "compiler/vectorize/widener_scalarized.h"
#include "compiler/vectorize/widener_scratch.h"
#include "compiler/vectorize/widener_strided.h"
#include "compiler/vectorize/widener_strides.h"
#include "compiler/vectorize/widener_tile_addresses.h"
#include "compiler/vectorize/widener_wrapping.h"

namespace kiln {

// Private to the widener*.cpp files, which use little but LLVM's types.
namespace widening {

using namespace llvm;

/// The distance between two addresses in elements; nothing if it is unknown or not a whole number of elements.
std::optional<int64_t> distance(Value* from, Value* to, uint64_t bytes, ScalarEvolution& evolution);

class Widener {
 public:
  Widener(Function& from, Function& to, FunctionAnalysisManager& analyses, const WidenOptions& options);

  /// Throws Refusal.
  void run();

 private:
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

  // A uniform value plus, for each lane, `distance` times the number of votes for lanes before it.
  struct Rank {
    Value* votes;  // uniform: a bit for each lane
    uint64_t distance;
  };

  // Accesses to adjacent members of structures, emitted together: loads at the first of them, stores at the last.
  struct Member {
    Instruction* access;
    int64_t offset;  // in elements, from the first access's address
  };
  using AccessGroup = SmallVector<Member>;

  // Consecutive loads at constant distances, with one bounds check for all of them.
  struct SharedCheck {
    AccessGroup members;
    Value* base = nullptr;         // address of the lowest member, once checked: in memory, or `buffer`
    AllocaInst* buffer = nullptr;  // where the loads' elements are copied if the check fails
    uint64_t buffer_bytes = 0;
    unsigned num_loaded = 0;  // members that have been loaded
  };

  // Consecutive elements in memory, each of which belongs to some lane.
  struct Strip {
    unsigned access, lane;           // of the first element
    SmallVector<unsigned> elements;  // index of each among all: access * kLanes + lane
  };

  // One or two accesses of a thread, as to a matrix's two elements, that together form strips.
  struct Tile {
    SmallVector<Instruction*, 2> accesses;
    SmallVector<Strip> strips;
    uint64_t bytes;               // of an element
    bool has_constant_distances;  // whether the distances between strips are known at compile time
  };

  // A select with a uniform condition between a consecutive load and zero: the address is selected instead.
  struct ZeroedLoad {
    SelectInst* select;
    bool is_sunk;  // loaded at its first use
  };

  // An access that consists of consecutive parts if the lanes' sums do.
  struct RunTimeShape {
    LaneSum address;
    std::optional<LaneSum> offset;  // what a divergent guard compares with `limit`; it has the terms of the address
    Value* allowed;                 // the guard; null: none
    Value* limit;                   // of a divergent guard
    uint64_t bytes;                 // of an element
    unsigned part_lanes;
  };

  // Whether lanes' sums are consecutive in each part, and the first of each.
  struct TestedSum {
    SmallVector<LaneTerm> terms;
    Value* condition;
    SmallVector<Value*> firsts;
    unsigned scope;  // in which it is known
  };

  // A load that is emitted at its first use.
  struct SunkLoad {
    LoadInst* load;
    Value* address;
  };

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
  bool uses_tail_load(const LoadInst& load, const GuardedAddress& target);
  std::optional<Pieces> pieces_of(const Pattern& pattern, uint64_t bytes, unsigned most_cost) const;
  Value* load_window(const LoadInst& load, const Window& window, Value* address, IRBuilder<>& builder);
  bool store_pattern(StoreInst& store, Value* pointer, Value* allowed, IRBuilder<>& builder);
  bool load_pattern(LoadInst& load, Value* pointer, Value* allowed, IRBuilder<>& builder);
  void widen_load(LoadInst& load, IRBuilder<>& builder);
  void widen_single_load(LoadInst& load, IRBuilder<>& builder);
  void widen_load_scalarized(LoadInst& load, IRBuilder<>& builder);
  void load_beside_border(LoadInst& load, IRBuilder<>& builder);
  void widen_store(StoreInst& store, IRBuilder<>& builder);
  void note_scattered(const Instruction& access, Value* address);
  void widen_store_scalarized(StoreInst& store, IRBuilder<>& builder);
  void widen_single_store(StoreInst& store, IRBuilder<>& builder);

  // ---- Addresses as sums

  Value* without_terms(Value* value, IRBuilder<>& builder);

  // ---- Accesses tested at run time

  std::optional<RunTimeShape> run_time_shape(Instruction& access, Type* type);
  std::pair<Value*, Value*> sums_of(const LaneSum& sum, IRBuilder<>& builder);
  const TestedSum& tested(const LaneSum& sum, unsigned width, IRBuilder<>& builder);
  TestedSum tested_and_extended(const LaneSum& sum, unsigned width, IRBuilder<>& builder);
  Values emit_by_run_time_shape(const RunTimeShape& shape, IRBuilder<>& builder,
                                function_ref<Values(ArrayRef<Value*>)> in_parts, Emitter scalarized);
  bool load_by_run_time_shape(LoadInst& load, IRBuilder<>& builder);
  bool store_by_run_time_shape(StoreInst& store, IRBuilder<>& builder);

  // ---- Consecutive loads or zero

  void find_zeroed_loads();
  bool select_address(LoadInst& load, Value* pointer, Value* allowed, IRBuilder<>& builder);
  void emit_sunk_loads(Instruction& user, IRBuilder<>& builder);

  // ---- Interleaved accesses

  void find_groups();
  void find_load_groups(BasicBlock& block);
  void find_store_groups(BasicBlock& block);
  void group_loads(BasicBlock& block, function_ref<bool(LoadInst&)> is_candidate,
                   function_ref<bool(const AccessGroup&, LoadInst&, Member&)> can_join,
                   function_ref<void(const AccessGroup&)> keep);
  bool is_interleaved_with(const AccessGroup& group, Instruction& access, Member& member);
  static int64_t lowest_offset(const AccessGroup& group);
  void load_group(const AccessGroup& group, IRBuilder<>& builder);
  void store_group(const AccessGroup& group, IRBuilder<>& builder);
  bool can_stay_interleaved(ArrayRef<Value*> members, unsigned& nodes);
  static Values operands_of(ArrayRef<Value*> members, unsigned i);
  Values compute_interleaved(ArrayRef<Value*> members, IRBuilder<>& builder);

  // ---- Shared bounds checks

  bool can_share_check(const AccessGroup& group, LoadInst& load, Member& member);
  void find_shared_checks(BasicBlock& block);
  void emit_shared_check(SharedCheck& shared, IRBuilder<>& builder);
  void copy_to_buffer(const SharedCheck& shared, LoadInst& lowest, Value* first, IRBuilder<>& builder);
  void load_with_shared_check(LoadInst& load, SharedCheck& shared, IRBuilder<>& builder);
  AllocaInst* acquire_buffer(uint64_t bytes);

  // ---- Tiles

  void find_tiles();
  bool make_tile(ArrayRef<Instruction*> accesses, ArrayRef<LaneOffsets> lane_offsets, Tile& tile);
  Value* check_tile_bounds(const Tile& tile, IRBuilder<>& builder);
  Values emit_by_tile(const Tile& tile, IRBuilder<>& builder, Emitter vectorized, Emitter scalarized);
  void load_tile(const Tile& tile, IRBuilder<>& builder);
  void store_tile(const Tile& tile, IRBuilder<>& builder);

  // ---- Collectives

  Value* multiply(CallInst& call, IRBuilder<>& builder);
  void widen_convergence_point(CallInst& call, unsigned point, IRBuilder<>& builder);
  void widen_collective(CallInst& call, LaneOperation operation, IRBuilder<>& builder);
  Value* permuted(Value* lanes, Value* sources, IRBuilder<>& builder);

  // ---- One lane after the other, and atomics

  std::optional<Rank> rank_of(Value* value, unsigned depth = 0);
  bool store_compressed(StoreInst& store, Value* address, Value* allowed, IRBuilder<>& builder);
  void widen_atomic(AtomicRMWInst& atomic, IRBuilder<>& builder);
  void widen_unguarded_atomic(AtomicRMWInst& atomic, IRBuilder<>& builder);
  bool combine_lanes(AtomicRMWInst& atomic, IRBuilder<>& builder);
  Values emit_combined(AtomicRMWInst& atomic, IRBuilder<>& builder);
  bool is_striped_range(AtomicRMWInst& atomic, Value* pointer);
  Value* update_exclusive(AtomicRMWInst& atomic, Value* address, IRBuilder<>& builder);
  void update_guarded_range(AtomicRMWInst& atomic, const GuardedAddress& target, IRBuilder<>& builder);
  void update_shared_range(AtomicRMWInst& atomic, Value* address, const std::optional<RangeGuard>& guard,
                           IRBuilder<>& builder);
  void update_shared_checked(AtomicRMWInst& atomic, IRBuilder<>& builder);

  const VectorIsa& isa_;
  const ArrayRef<ConvergencePoint> convergence_points_;
  const bool has_barriers_;
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
  DenseMap<Instruction*, AccessGroup> groups_;     // by the access that emits all of them
  DenseMap<Instruction*, Instruction*> group_of_;  // of loads
  DenseMap<Instruction*, Values> registers_;       // of load groups without gaps, in their order in memory
  DenseSet<Instruction*> deferred_stores_;
  SmallVector<TestedSum> tested_sums_;  // in the scopes that are open
  unsigned num_tested_ = 0;             // accesses
  DenseMap<LoadInst*, ZeroedLoad> zeroed_loads_;
  DenseMap<Value*, SunkLoad> sunk_loads_;  // by the select
  std::vector<SharedCheck> shared_checks_;
  DenseMap<Instruction*, unsigned> shared_check_of_;            // loads
  SmallVector<std::pair<AllocaInst*, uint64_t>> free_buffers_;  // and their bytes
  DenseMap<Instruction*, Tile> tiles_;                          // by the first load or the last store
  DenseSet<Instruction*> stored_in_tiles_;                      // the others
};

}  // namespace widening
}  // namespace kiln
