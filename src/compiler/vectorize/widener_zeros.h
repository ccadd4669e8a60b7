// `inside ? x[i] : 0`, as in bodies that read first and check borders afterwards. If the condition is uniform, the
// widener selects the address, of the data or of zeros. So nothing is read that is not needed, and neither the guard
// nor the select is a branch that depends on data: they are evaluated one after the other, and a range beyond the
// border takes the fast path.
//
// The search is linear in the instructions.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include "compiler/vectorize/widener_checks.h"
#include "compiler/vectorize/widener_lane_accesses.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_strided.h"
#include "compiler/vectorize/widener_strides.h"

namespace kiln::widening {

class ZeroedLoads {
 public:
  ZeroedLoads(Strides& strides, AddressChecks& checks, StridedAccesses& strided, LaneAccesses& lane_accesses,
              Lanes& lanes)
      : strides_(strides),
        checks_(checks),
        strided_(strided),
        lane_accesses_(lane_accesses),
        lanes_(lanes),
        layout_(lanes.layout()) {}

  /// Called once, before the function is widened. Moves the selects' conditions before the loads. `is_taken`: the load
  /// is emitted with others.
  void find(Function& from, function_ref<bool(LoadInst&)> is_taken);

  /// Emits the load and its select, whose vector it sets, or sinks both. False if the load is none of these.
  bool load(LoadInst& load, IRBuilder<>& builder);

  /// Emits the loads that are sunk to their first use, which is `user`. Called before each instruction, so that its
  /// operands are there wherever its parts are emitted.
  void emit_sunk_loads(Instruction& user, IRBuilder<>& builder);
  bool is_sunk(const Instruction& select) const { return sunk_loads_.contains(&select); }

 private:
  // A select with a uniform condition between a consecutive load and zero: the address is selected instead.
  struct ZeroedLoad {
    SelectInst* select;
    bool is_sunk;  // loaded at its first use
  };

  // A load that is emitted at its first use.
  struct SunkLoad {
    LoadInst* load;
    Value* address;
  };

  Strides& strides_;
  AddressChecks& checks_;
  StridedAccesses& strided_;
  LaneAccesses& lane_accesses_;
  Lanes& lanes_;
  const DataLayout& layout_;
  DenseMap<LoadInst*, ZeroedLoad> zeroed_loads_;
  DenseMap<const Value*, SunkLoad> sunk_loads_;  // by the select
};

}  // namespace kiln::widening
