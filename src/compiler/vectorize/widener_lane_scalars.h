// The scalar that one lane has of a value, computed from uniform values and the lane index. Consecutive accesses need
// the first lane's address, and their checks the last one's, but no vector of addresses.
//
// Linear in the instructions of the value, each time: common subexpressions are removed afterwards. A loop phi with a
// stride becomes a scalar phi for each lane of which the value is needed.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>

#include <utility>

#include "compiler/vectorize/widener_flow.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_strides.h"

namespace kiln::widening {

class LaneScalars {
 public:
  LaneScalars(Strides& strides, const ControlFlow& blocks, Lanes& lanes)
      : strides_(strides), blocks_(blocks), lanes_(lanes) {}

  /// What `lane` has, if it is active, of a value with a stride or a pattern. If there are pieces in it, all lanes must
  /// be on their sides.
  Value* at_lane(Value* value, unsigned lane, IRBuilder<>& builder);

  /// What an active lane has whose index is known at run time only.
  Value* at_active_lane(Value* value, Value* lane, IRBuilder<>& builder);
  /// Whether at_active_lane() takes the value.
  bool can_be_computed_at_lane(Value* value) const;
  /// Whether a few scalar operations compute what a lane has. `left` counts them down.
  bool is_cheap_at_lane(Value* value, unsigned& left) const;

  /// Of a piece: as unsigned numbers. The piece's condition requires that neither is negative.
  Value* remainder_of(Instruction& instruction, Value* number, IRBuilder<>& builder);

  /// Gives the phis that at_lane() has made their values. To be called once, when all blocks are widened.
  void complete_phis();

 private:
  Value* at_lane_of_piece(Instruction& instruction, const Piece& piece, unsigned lane, IRBuilder<>& builder);

  Strides& strides_;
  const ControlFlow& blocks_;
  Lanes& lanes_;
  DenseMap<std::pair<PHINode*, unsigned>, PHINode*> lane_phis_;
  SmallVector<std::pair<PHINode*, unsigned>> new_lane_phis_;
};

}  // namespace kiln::widening
