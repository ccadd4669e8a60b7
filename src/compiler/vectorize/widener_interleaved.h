// Interleaved accesses to members of structures, such as `x[4 * i + 1]` and the components of a `float4`: a member of
// all lanes is every fourth element of the same registers, which are loaded or stored once for all members.
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
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_strided.h"
#include "compiler/vectorize/widener_thread_code.h"
#include "compiler/vectorize/widener_tiles.h"

namespace kiln::widening {

class InterleavedAccesses {
 public:
  /// `tiles`: its stores are not interleaved ones.
  InterleavedAccesses(ThreadCode& code, const Tiles& tiles, AddressChecks& checks, StridedAccesses& strided,
                      LaneAccesses& lane_accesses, Lanes& lanes)
      : evolution_(code.evolution),
        strides_(code.strides),
        tiles_(tiles),
        checks_(checks),
        strided_(strided),
        lane_accesses_(lane_accesses),
        lanes_(lanes),
        layout_(lanes.layout()) {}

  /// Called once for each block, before the function is widened. Moves addresses of later loads to the first of a
  /// group.
  void find(BasicBlock& block);
  bool contains(const LoadInst& load) const { return group_of_.contains(&load); }

  /// Emits the group at the load, and sets its loads' vectors. False: there is none.
  bool load(LoadInst& load, IRBuilder<>& builder);
  /// True also for stores that are emitted later, with the last one of their group.
  bool store(StoreInst& store, IRBuilder<>& builder);

 private:
  void find_load_groups(BasicBlock& block);
  void find_store_groups(BasicBlock& block);
  bool is_interleaved_with(const AccessGroup& group, Instruction& access, Member& member);
  void load_group(const AccessGroup& group, IRBuilder<>& builder);
  void store_group(const AccessGroup& group, IRBuilder<>& builder);
  bool can_stay_interleaved(ArrayRef<Value*> members, unsigned& nodes);
  Values compute_interleaved(ArrayRef<Value*> members, IRBuilder<>& builder);

  ScalarEvolution& evolution_;
  Strides& strides_;
  const Tiles& tiles_;
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
};

}  // namespace kiln::widening
