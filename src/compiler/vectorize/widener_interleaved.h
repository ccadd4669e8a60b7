// Interleaved accesses to members of structures, such as `x[4 * i + 1]` and the components of a `float4`: a member of
// all lanes is every fourth element of the same registers, which are loaded or stored once for all members.
//
// Members that are far from one lane's to the next one's are rows, as in `x[columns * i + k]` for four `k`: what a lane
// loads of its row is a part of a register, and registers are transposed. So are rows of blocks of iterations, which
// are stored in parts, too, and need no checks (vectorize/row_blocks.h).
//
// Members of records whose places data choose, as in `points[4 * neighbor + k]` or a node's fields, are parts of rows
// that begin anywhere (widener_records.cpp).
//
// Indices of 32 bits may wrap between two members, `x[3 * i]` and `x[3 * i + 1]`. The bounds check of a group shows
// that they do not, as it does for lanes; where it fails each member has its own address.
//
// The search is quadratic in a block's groups at worst.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include "compiler/vectorize/widener_access_groups.h"
#include "compiler/vectorize/widener_checks.h"
#include "compiler/vectorize/widener_lane_accesses.h"
#include "compiler/vectorize/widener_lane_sums.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_strided.h"
#include "compiler/vectorize/widener_thread_code.h"
#include "compiler/vectorize/widener_tiles.h"

namespace kiln::widening {

/// Of a row, or of a record, a lane's part of a register is loaded.
inline constexpr uint64_t kRowPartBytes = 16;
/// A record has at most as much as a line of the cache.
inline constexpr uint64_t kRecordBytes = 64;

class InterleavedAccesses {
 public:
  /// `tiles`: its stores are not interleaved ones.
  InterleavedAccesses(ThreadCode& code, const Tiles& tiles, LaneScalars& lane_scalars, AddressChecks& checks,
                      StridedAccesses& strided, LaneAccesses& lane_accesses, const LaneSums& lane_sums, Lanes& lanes)
      : flow_(code.flow),
        evolution_(code.evolution),
        strides_(code.strides),
        wrapping_(code.wrapping),
        patterns_(code.patterns),
        lane_sums_(lane_sums),
        tiles_(tiles),
        lane_scalars_(lane_scalars),
        checks_(checks),
        strided_(strided),
        lane_accesses_(lane_accesses),
        lanes_(lanes),
        layout_(lanes.layout()) {}

  /// Called once for each block, before the function is widened. Moves addresses of later loads to the first of a
  /// group.
  void find(BasicBlock& block);
  bool contains(const LoadInst& load) const { return group_of_.contains(&load); }
  bool contains(const StoreInst& store) const { return deferred_stores_.contains(&store) || groups_.contains(&store); }

  /// Emits the group at the load, and sets its loads' vectors. False: there is none.
  bool load(LoadInst& load, IRBuilder<>& builder);
  /// True also for stores that are emitted later, with the last one of their group.
  bool store(StoreInst& store, IRBuilder<>& builder);

 private:
  void find_load_groups(BasicBlock& block);
  void find_store_groups(BasicBlock& block);
  std::optional<int64_t> offset_of(const GuardedAddress& first, const GuardedAddress& access, uint64_t bytes) const;
  std::optional<int64_t> offset_unless_wrapped(const GuardedAddress& first, const GuardedAddress& access,
                                               uint64_t bytes, bool are_in_record) const;
  bool is_interleaved_with(const AccessGroup& group, Instruction& access, Member& member);
  void check_members(const AccessGroup& group, AccessShape& shape) const;
  uint64_t covered_by_guard(const AccessGroup& group) const;
  bool is_worth_storing(const AccessGroup& group);
  uint64_t step_of(Value* pointer, uint64_t bytes);
  void load_rows(const AccessGroup& group, IRBuilder<>& builder);
  Values load_members_alone(const AccessGroup& group, IRBuilder<>& builder);
  void load_group(const AccessGroup& group, IRBuilder<>& builder);
  bool is_in_record(Value* address, Type* type);
  Values gather_words(const LoadInst& load, Value* records, Value* mask, ArrayRef<uint64_t> indices,
                      IRBuilder<>& builder);
  void load_records(const AccessGroup& group, IRBuilder<>& builder);
  Values rows_of(Instruction& access, IRBuilder<>& builder);
  void load_block(const AccessGroup& group, IRBuilder<>& builder);
  void store_block(const AccessGroup& group, IRBuilder<>& builder);
  bool fill_words(ArrayRef<Value*> members, Type* element, uint64_t bytes) const;
  void store_words(ArrayRef<Value*> members, Value* address, Align alignment, IRBuilder<>& builder);
  void store_group(const AccessGroup& group, IRBuilder<>& builder);
  bool can_stay_interleaved(ArrayRef<Value*> members, unsigned& nodes);
  Values compute_interleaved(ArrayRef<Value*> members, IRBuilder<>& builder);

  const StructuredFlow& flow_;
  ScalarEvolution& evolution_;
  Strides& strides_;
  Wrapping& wrapping_;
  AddressPatterns& patterns_;
  const LaneSums& lane_sums_;
  const Tiles& tiles_;
  LaneScalars& lane_scalars_;
  AddressChecks& checks_;
  StridedAccesses& strided_;
  LaneAccesses& lane_accesses_;
  Lanes& lanes_;
  const DataLayout& layout_;
  // Emitted together: loads at the first of them, stores at the last.
  DenseMap<const Instruction*, AccessGroup> groups_;           // by the access that emits all of them
  DenseMap<const Instruction*, const Instruction*> group_of_;  // of loads
  DenseMap<const Instruction*, Values> registers_;             // of load groups without gaps, in their order in memory
  DenseSet<const Instruction*> deferred_stores_;
  DenseMap<const Value*, bool> are_in_records_;  // addresses
};

}  // namespace kiln::widening
