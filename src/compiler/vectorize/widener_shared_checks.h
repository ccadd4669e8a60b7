// Consecutive loads at constant distances, such as `x[i]`, `x[i + 256]` and `x[i + 512]`: one bounds check covers all
// of them. If it fails, their elements in bounds are copied to a buffer on the stack, at the same distances, so that
// the code that follows is the same: loads, each of which can be an operand of its user.
//
// Rejected: phis of the loads' registers. All of them would be live at the join.
//
// The search is quadratic in a block's loads at worst.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/vectorize/widener_access_groups.h"
#include "compiler/vectorize/widener_checks.h"
#include "compiler/vectorize/widener_lane_scalars.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_scalarized.h"
#include "compiler/vectorize/widener_scratch.h"
#include "compiler/vectorize/widener_strided.h"
#include "compiler/vectorize/widener_thread_code.h"

namespace kiln::widening {

class SharedChecks {
 public:
  SharedChecks(ThreadCode& code, LaneScalars& lane_scalars, AddressChecks& checks, StridedAccesses& strided,
               LaneLoops& lane_loops, Scratch& scratch, Lanes& lanes)
      : flow_(code.flow),
        evolution_(code.evolution),
        strides_(code.strides),
        patterns_(code.patterns),
        lane_scalars_(lane_scalars),
        checks_(checks),
        strided_(strided),
        lane_loops_(lane_loops),
        scratch_(scratch),
        lanes_(lanes),
        layout_(lanes.layout()) {}

  /// Called once for each block, before the function is widened and after the block's interleaved accesses are found.
  /// `is_taken`: the load is emitted with others, and has a check of its own.
  void find(BasicBlock& block, function_ref<bool(LoadInst&)> is_taken);

  /// False if the load shares no check.
  bool load(LoadInst& load, IRBuilder<>& builder);

 private:
  // Consecutive loads at constant distances, with one bounds check for all of them.
  struct SharedCheck {
    AccessGroup members;
    Value* base = nullptr;         // address of the lowest member, once checked: in memory, or `buffer`
    AllocaInst* buffer = nullptr;  // where the loads' elements are copied if the check fails
    uint64_t buffer_bytes = 0;
    unsigned num_loaded = 0;  // members that have been loaded
  };

  bool can_share_check(const AccessGroup& group, LoadInst& load, Member& member);
  void emit_check(SharedCheck& shared, IRBuilder<>& builder);
  void copy_to_buffer(const SharedCheck& shared, LoadInst& lowest, Value* first, IRBuilder<>& builder);
  AllocaInst* acquire_buffer(uint64_t bytes);

  const StructuredFlow& flow_;
  ScalarEvolution& evolution_;
  Strides& strides_;
  AddressPatterns& patterns_;
  LaneScalars& lane_scalars_;
  AddressChecks& checks_;
  StridedAccesses& strided_;
  LaneLoops& lane_loops_;
  Scratch& scratch_;
  Lanes& lanes_;
  const DataLayout& layout_;
  std::vector<SharedCheck> shared_checks_;
  DenseMap<const Instruction*, unsigned> check_of_;             // loads
  SmallVector<std::pair<AllocaInst*, uint64_t>> free_buffers_;  // and their bytes
};

}  // namespace kiln::widening
