// Collectives, which become permutations and reductions of vectors, and barriers. Constant time for each call.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include "compiler/ir/convergence_point.h"
#include "compiler/ir/lane_operations.h"
#include "compiler/ir/vector_isa.h"
#include "compiler/vectorize/widener_lanes.h"

namespace kiln::widening {

class Collectives {
 public:
  Collectives(ArrayRef<ConvergencePoint> points, Lanes& lanes)
      : points_(points), isa_(lanes.vector_isa()), lanes_(lanes) {}

  /// `point` is the number of the convergence point that the call refers to.
  void widen_convergence_point(CallInst& call, unsigned point, IRBuilder<>& builder);

  /// Sets the call's vector or scalar.
  void widen(CallInst& call, LaneOperation operation, IRBuilder<>& builder);

 private:
  // widener_matrices.cpp
  Value* multiply(CallInst& call, IRBuilder<>& builder);
  Value* permuted(Value* lanes, Value* sources, IRBuilder<>& builder);

  const ArrayRef<ConvergencePoint> points_;
  const VectorIsa& isa_;
  Lanes& lanes_;
};

}  // namespace kiln::widening
