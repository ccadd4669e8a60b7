// What widens a function (vectorize/widen.h): one thread's instructions become those of a simdgroup's vectors.
//
// The class is one, since each part asks the others for masks and vectors; its parts are in files of one subject each:
//
//   widener.cpp             operands, and instructions that compute
//   widener_flow.cpp        blocks, masks, phis
//   widener_consecutive.cpp        values that grow from lane to lane
//   widener_address_patterns.cpp    values that differ from lane to lane by what is known when compiling
//   widener_memory.cpp      variables, loads, stores
//   widener_zeros.cpp       choices between what is loaded and zero
//   widener_interleaved.cpp      accesses to several members of structures
//   widener_shared_checks.cpp     loads of rows at known distances
//   widener_tiles.cpp       loads and stores of matrices: rows of a few lanes each
//   widener_collectives.cpp   what lanes exchange, and barriers
//   widener_matrices.cpp    products of matrices
//   widener_scalarized.cpp       what is done one lane after the other
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
#include <optional>
#include <string>
#include <vector>

#include "compiler/analysis/structured_flow.h"
#include "compiler/ir/convergence_point.h"
#include "compiler/ir/lane_operations.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/ir/striped_atomics.h"
#include "compiler/vectorize/widen.h"

namespace kiln {

// Of these files alone, which speak of little but LLVM's.
namespace widening {

using namespace llvm;

// Why a function cannot be widened.
struct Refusal {
  std::string reason;
};

[[noreturn]] void refuse(std::string reason);

/// A copy, not inserted yet. Its operands are made before it: where one is refused, no copy is left behind.
inline Instruction* with_operands(const Instruction& instruction, ArrayRef<Value*> operands) {
  Instruction* copy = instruction.clone();
  for (auto [use, operand] : zip_equal(copy->operands(), operands)) use.set(operand);
  return copy;
}

/// From one address to another in elements; nothing where it is not known, or no whole number of them.
std::optional<int64_t> distance(Value* from, Value* to, uint64_t bytes, ScalarEvolution& evolution);

inline bool is_word(uint64_t bytes) { return bytes == 4 || bytes == 8; }

inline bool is_all(const Value* mask) {
  const auto* constant = dyn_cast<Constant>(mask);
  return constant && constant->isAllOnesValue();
}

class Widener {
 public:
  Widener(Function& from, Function& to, FunctionAnalysisManager& analyses, const WidenOptions& options);

  /// Throws Refusal.
  void run();

 private:
  using Values = SmallVector<Value*>;
  using Maker = function_ref<Values()>;
  using MakerAt = function_ref<Values(Value* address)>;

  // A guarded address: where the guard allows it, else memory of zeros or a sink. Null where there is no guard.
  struct Guarded {
    Value* allowed;
    Value* address;
  };

  // How lanes access memory together.
  struct Row {
    uint64_t bytes;                 // of an element
    uint64_t reach;                 // from the lowest lane's address to the last element that is touched
    bool is_own;                    // nothing is touched that is not some lane's
    bool is_for_all = false;        // if nothing tells that it is there, then of all lanes
    unsigned lowest = 0;            // the lane
    bool check_scalarized = false;  // code for what is no row finds itself that all of it is outside
  };

  // What the lanes have where that is a number in all of them plus one that is known when compiling: as those that
  // share a word, or go backwards. The arithmetic may wrap.
  struct Pattern {
    std::array<uint64_t, kLanes> offsets;  // from the lowest
    unsigned lowest, highest;              // lanes

    bool operator==(const Pattern&) const = default;
  };

  // The first and the last lane that take part.
  struct Present {
    Value *first, *last;
  };

  // Accesses to neighbouring members of structures, which are made together: loads by the first of them, stores by the
  // last.
  struct Member {
    Instruction* access;
    int64_t place;  // in elements, from the first access's address
  };
  using Group = SmallVector<Member>;

  // Loads of rows that are a known number of elements apart, and which one question lets through.
  struct Rows {
    Group members;
    Value* first = nullptr;      // of the lowest member, once it has been asked: in memory, or copied to `room`
    AllocaInst* room = nullptr;  // where the rows are put together if the answer is no
    uint64_t room_bytes = 0;
    unsigned made = 0;  // members that have been loaded
  };

  // Lanes' addresses: a number that is the same in all of them, and for each `offsets` and `rows` times `pitch`, which
  // is the same in all lanes too, or null. Nothing in it wraps but at 64 bits.
  struct Places {
    std::array<uint64_t, kLanes> offsets{}, rows{};
    Value* pitch = nullptr;

    bool operator==(const Places&) const = default;
  };

  // Elements that follow one another in memory, and belong to some lane each.
  struct Strip {
    unsigned access, lane;           // whose is the first
    SmallVector<unsigned> elements;  // each one's place among all: the access times kLanes, and the lane
  };

  // One or two accesses of a thread, as a matrix' two elements, that are strips together.
  struct Tile {
    SmallVector<Instruction*, 2> accesses;
    SmallVector<Strip> strips;
    uint64_t bytes;   // of an element
    bool is_certain;  // whether the strips' places differ by what is known when compiling
  };

  // Code that runs if `condition` holds, which is the same in all lanes, and code that runs if not.
  struct Fork {
    Value* condition;
    const char *one, *other;  // the blocks' names
    bool is_likely = true;    // to hold; else nothing is known of that
  };

  // Whether lanes access memory as a row, which is asked when the code runs.
  struct Asked {
    Value *is_row, *first;  // an i1, and the address of the row's lowest lane
    Value *offset, *limit;  // of a guard that differs from lane to lane; else null
    bool is_among_present;  // asked of the lanes that take part alone
  };

  // A choice between a row that is loaded and zero, by what is the same in all lanes: the address is chosen.
  struct ZeroedLoad {
    SelectInst* choice;
    bool is_late;  // loaded where it is wanted first
  };

  // What is loaded where it is wanted first.
  struct LateLoad {
    LoadInst* load;
    Value* address;
  };

  // A divergent loop's value that is wanted outside.
  struct Kept {
    Loop* loop;
    Instruction* value;
    PHINode* phi;
    Value* last;
    BasicBlock* side = nullptr;  // of a result that goes round: where lanes get `next`; others keep what they have
    Value* next = nullptr;
  };

  // A value that a loop's threads carry, which is wanted outside too: those that leave at a fork have what they came
  // with, others what its side computes.
  struct Result {
    PHINode* carried;
    BasicBlock* side;
    Value* next;
  };

  // ---- What differs

  bool is_divergent(const Value* value) const { return flow_.is_divergent(value); }
  bool is_divergent_branch(const BasicBlock& block) const { return flow_.is_divergent_branch(block); }
  bool is_divergent_loop(const Loop& loop) const { return flow_.is_divergent_loop(loop); }
  BasicBlock* join_of(BranchInst& branch) const { return flow_.join_of(branch); }

  // ---- Operands and instructions that compute

  Type* vector_of(Type* type) const;
  Value* scalar(Value* value);
  Value* vector(Value* value, IRBuilder<>& builder);
  bool can_be_postponed(Instruction& instruction);
  Value* vector_here(Instruction& instruction, IRBuilder<>& builder);
  Value* any(Value* mask, IRBuilder<>& builder);
  Value* mask_of_words(Value* words, IRBuilder<>& builder);
  Constant* lane_numbers(Type* type) const;
  void widen_instruction(Instruction& instruction, IRBuilder<>& builder);
  void copy(Instruction& instruction, IRBuilder<>& builder);
  Value* widen_arithmetic(Instruction& instruction, IRBuilder<>& builder);
  Value* without_zeros(Value* divisor, IRBuilder<>& builder, unsigned depth = 0);
  Value* zero_unless(Instruction& choice, IRBuilder<>& builder);
  void widen_checked(WithOverflowInst& call, IRBuilder<>& builder);
  Value* widen_intrinsic(IntrinsicInst& call, IRBuilder<>& builder);

  // ---- Blocks, masks, phis

  Value* condition_for(const BasicBlock& from, const BasicBlock& to, IRBuilder<>& builder);
  Value* narrowed(Value* mask, Value* condition, IRBuilder<>& builder);
  Value* mask_at(BasicBlock& block, IRBuilder<>& builder);
  void widen_block(BasicBlock& block);
  bool runs_always(BasicBlock& fork) const;
  BasicBlock* side_before(BasicBlock& block) const;
  std::optional<Result> result_of(Loop& loop, Instruction& value) const;
  void keep_results(Loop& loop, IRBuilder<>& builder);
  PHINode* carrier_of(Loop& loop, Instruction& value);
  void widen_terminator(BasicBlock& block, IRBuilder<>& builder);
  void close_loop(Loop& loop, BasicBlock& latch, BranchInst& branch, IRBuilder<>& builder);
  void complete_phis(BasicBlock& block);
  Value* incoming(PHINode& phi, BasicBlock& before, IRBuilder<>& builder);
  Values either(const Fork& fork, IRBuilder<>& builder, Maker one, Maker other);

  // ---- Values that grow from lane to lane

  std::optional<int64_t> stride_of(Value* value);
  std::optional<int64_t> stride_of_result(Value* value);
  Value* at_lane(Value* value, unsigned lane, IRBuilder<>& builder);
  Present present_lanes(IRBuilder<>& builder);
  bool reaches_back(Value* value);
  bool can_be_at_a_lane(Value* value);
  Value* at_present_lane(Value* value, Value* lane, IRBuilder<>& builder);
  void complete_lane_phis();
  static std::optional<std::array<APInt, kLanes>> values_of(Value* value, unsigned depth = 0);
  std::optional<std::array<APInt, kLanes>> lane_bits(Value* value, unsigned depth = 0);
  bool is_modular(Value* value);
  std::optional<Pattern> pattern_of(Value* value);
  std::optional<Pattern> sum_of_patterns(Value* one, Value* other);
  bool grow_in_step(Value* one, Value* other);
  Value* is_row(Value* value, IRBuilder<>& builder);
  static bool grows_with_operand(const Instruction& instruction);
  bool has_one_sign(Value* value);
  bool is_certain(Value* value);
  bool is_masked_row(Value* pointer, uint64_t bytes);
  Value* lanes_below(CmpInst& comparison, IRBuilder<>& builder);

  // ---- Memory

  bool has_gathers(Type* type) const;
  void widen_variable(AllocaInst& variable);
  static std::optional<Guarded> guarded(Value* pointer);
  static Guarded place_of(Instruction& access);
  Value* less(Value* limit, uint64_t reach);
  bool is_limited_row(const Guarded& place, uint64_t bytes);
  bool is_edge_loaded(const LoadInst& load, const Guarded& place);
  Values by_shape(Value* pointer, Value* allowed, const Row& shape, IRBuilder<>& builder, MakerAt together,
                  Maker apart);
  uint64_t step_of(Value* pointer, uint64_t bytes);
  unsigned register_lanes(Type* element) const;
  LoadInst* load_part(const LoadInst& load, unsigned count, Value* address, IRBuilder<>& builder);
  Values load_steps(const LoadInst& load, Value* address, uint64_t step, ArrayRef<uint64_t> places,
                    IRBuilder<>& builder, Values* in_memory = nullptr);
  Values load_words(const LoadInst& load, Value* address, uint64_t step, ArrayRef<uint64_t> places,
                    IRBuilder<>& builder);
  void store_steps(Value* lanes, Value* address, uint64_t step, Align alignment, IRBuilder<>& builder);
  bool load_pattern(LoadInst& load, Value* pointer, Value* allowed, IRBuilder<>& builder);
  std::optional<Asked> prefetch_range(Value* pointer, Value* allowed, const Row& shape, IRBuilder<>& builder);
  Value* is_outside(const Asked& asked, const Row& shape, IRBuilder<>& builder);
  Value* load_row(LoadInst& load, Value* address, IRBuilder<>& builder);
  void widen_load(LoadInst& load, IRBuilder<>& builder);
  void widen_load_alone(LoadInst& load, IRBuilder<>& builder);
  void widen_load_scalarized(LoadInst& load, IRBuilder<>& builder);
  void widen_store(StoreInst& store, IRBuilder<>& builder);
  void widen_store_scalarized(StoreInst& store, IRBuilder<>& builder);
  void widen_store_alone(StoreInst& store, IRBuilder<>& builder);

  // ---- Rows or zero

  void find_zeroed_loads();
  bool choose_address(LoadInst& load, Value* pointer, Value* allowed, IRBuilder<>& builder);
  void load_late(Instruction& user, IRBuilder<>& builder);

  // ---- Members of structures

  void find_groups(ScalarEvolution& evolution);
  void find_load_groups(BasicBlock& block, ScalarEvolution& evolution);
  void find_store_groups(BasicBlock& block, ScalarEvolution& evolution);
  void group_loads(BasicBlock& block, function_ref<bool(LoadInst&)> is_used,
                   function_ref<bool(const Group&, LoadInst&, Member&)> joins, function_ref<void(const Group&)> keep);
  bool joins(const Group& group, Instruction& access, ScalarEvolution& evolution, Member& member);
  static int64_t lowest_offset(const Group& group);
  void load_group(const Group& group, IRBuilder<>& builder);
  void store_group(const Group& group, IRBuilder<>& builder);
  Values interleaved(ArrayRef<Value*> members, IRBuilder<>& builder);
  bool lies_in_order(ArrayRef<Value*> members, unsigned& nodes);
  static Values operands_of(ArrayRef<Value*> members, unsigned i);
  Values in_order(ArrayRef<Value*> members, IRBuilder<>& builder);

  // ---- Rows at known distances

  bool joins_rows(const Group& group, LoadInst& load, ScalarEvolution& evolution, Member& member);
  void find_rows(BasicBlock& block, ScalarEvolution& evolution);
  void begin_rows(Rows& rows, IRBuilder<>& builder);
  void copy_rows(const Rows& rows, LoadInst& lowest, Value* first, IRBuilder<>& builder);
  void load_one_of_rows(LoadInst& load, Rows& rows, IRBuilder<>& builder);
  AllocaInst* take_room(uint64_t bytes);

  // ---- Tiles

  std::optional<Places> places_of(Value* value, unsigned depth = 0);
  static std::optional<Places> sum_of(const std::optional<Places>& one, const std::optional<Places>& other);
  static std::optional<Places> product_of(const std::optional<Places>& places, uint64_t factor);
  void find_tiles(ScalarEvolution& evolution);
  bool make_tile(ArrayRef<Instruction*> accesses, ArrayRef<Places> places, Tile& tile);
  std::optional<Places> places_of_access(Instruction& access);
  Value* tile_is_there(const Tile& tile, IRBuilder<>& builder);
  Values by_tile(const Tile& tile, IRBuilder<>& builder, Maker together, Maker apart);
  void load_tile(const Tile& tile, IRBuilder<>& builder);
  void store_tile(const Tile& tile, IRBuilder<>& builder);

  // ---- What lanes exchange

  Value* multiply(CallInst& call, IRBuilder<>& builder);
  void wait(CallInst& call, unsigned site, IRBuilder<>& builder);
  void exchange(CallInst& call, LaneOperation operation, IRBuilder<>& builder);
  Value* permuted(Value* lanes, Value* sources, IRBuilder<>& builder);

  // ---- One lane after the other

  using LanePositions = MapVector<Value*, AllocaInst*>;

  static std::optional<unsigned> only_lane(const Value* mask);
  AllocaInst* scratch(Type* type);
  void store_leaves(Value* value, LanePositions& places, IRBuilder<>& builder);
  Value* at_lane_of_loop(Value* value, Value* lane, const LanePositions& places, IRBuilder<>& builder);
  void each_lane(Instruction& instruction, IRBuilder<>& builder, bool may_be_alone = true);
  void in_lane(unsigned lane, Instruction& instruction, IRBuilder<>& builder, bool may_be_alone);
  Value* make_one(Instruction& instruction, Instruction& one, bool may_be_alone, IRBuilder<>& builder);
  void check_exclusive(uint64_t offset, function_ref<bool(uint64_t)> is_output);
  void find_updated_arrays(function_ref<bool(uint64_t)> is_output);
  std::optional<UpdatedArray> updated_array(const Instruction& update);
  Value* is_alone(Instruction& instruction);
  void widen_atomic(AtomicRMWInst& atomic, IRBuilder<>& builder);
  void widen_allowed_atomic(AtomicRMWInst& atomic, IRBuilder<>& builder);
  bool combine_lanes(AtomicRMWInst& atomic, IRBuilder<>& builder);
  Values made_together(AtomicRMWInst& atomic, IRBuilder<>& builder);
  bool is_updated_range(AtomicRMWInst& atomic, Value* pointer);
  Value* update_alone(AtomicRMWInst& atomic, Value* address, IRBuilder<>& builder);
  void update_limited_row(AtomicRMWInst& atomic, const Guarded& place, IRBuilder<>& builder);
  void update_shared_row(AtomicRMWInst& atomic, Value* address, const std::optional<RangeGuard>& guard,
                         IRBuilder<>& builder);
  void update_shared(AtomicRMWInst& atomic, IRBuilder<>& builder);
  static void check_pair(Instruction& instruction);

  const bool has_avx512_;
  const bool is_full_;
  const ArrayRef<ConvergencePoint> sites_;
  const bool has_barriers_;
  Function& from_;
  Function& to_;
  StructuredFlow flow_;
  LoopInfo& loops_;
  DominatorTree& dominators_;
  const DataLayout& layout_;
  LLVMContext& context_;
  Type* mask_type_;
  BasicBlock* allocas_ = nullptr;
  DenseMap<Type*, SmallVector<AllocaInst*>> unused_scratch_;
  uint64_t scratch_bytes_ = 0;
  DenseMap<const Instruction*, LoadInst*> updated_arrays_;  // of atomics: where their array begins
  Value* alone_ = nullptr;  // of the function that is widened: whether the launch is; null where nobody asks
  Value* mask_ = nullptr;   // of the block that is being widened
  DenseMap<Value*, Value*> scalars_, vectors_;
  DenseMap<std::pair<Value*, uint64_t>, Value*> lessened_;
  DenseSet<Value*> postponed_;
  DenseMap<std::pair<Instruction*, BasicBlock*>, Value*> made_in_;  // of those, in which block
  DenseMap<BasicBlock*, BasicBlock*> begin_, end_;                  // a block's first and last
  DenseMap<BasicBlock*, Value*> masks_;
  // Without AVX-512, of masks of loops: the same as words, which are registers that choose. Bits would be packed to
  // bytes wherever they go from block to block.
  DenseMap<Value*, Value*> as_words_;
  DenseMap<Loop*, PHINode*> live_;
  DenseMap<PHINode*, Value*> carried_;
  DenseSet<PHINode*> keeping_;  // loop-carried values that are wanted outside
  DenseMap<Value*, std::optional<int64_t>> strides_;
  DenseMap<std::pair<PHINode*, unsigned>, PHINode*> lane_phis_;
  SmallVector<std::pair<PHINode*, unsigned>> new_lane_phis_;
  std::vector<Kept> kept_;
  DenseMap<Instruction*, Group> groups_;           // by the access that makes all of them
  DenseMap<Instruction*, Instruction*> group_of_;  // of loads
  DenseMap<Instruction*, Values> registers_;       // of groups of loads without gaps, as they lie in memory
  DenseSet<Instruction*> waiting_stores_;
  DenseMap<LoadInst*, ZeroedLoad> zeroed_;
  DenseMap<Value*, LateLoad> late_;  // by the choice
  std::vector<Rows> rows_;
  DenseMap<Instruction*, unsigned> rows_of_;                  // loads
  SmallVector<std::pair<AllocaInst*, uint64_t>> free_rooms_;  // and their bytes
  DenseMap<Instruction*, Tile> tiles_;                        // by the first load, or the last store
  DenseSet<Instruction*> stored_in_tiles_;                    // the others
};

}  // namespace widening
}  // namespace kiln
