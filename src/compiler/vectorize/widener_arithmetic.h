// Arithmetic of divergent values: one vector instruction for one of a thread, but for those that processors have no
// vector instructions for, or that may trap in inactive lanes.
//
//   widener_arithmetic.cpp   all others
//   widener_division.cpp     integer division
//   widener_conversions.cpp  floating-point numbers to integers
//
// Constant time for each instruction.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/IntrinsicInst.h>

#include "compiler/ir/vector_isa.h"
#include "compiler/vectorize/widener_checks.h"
#include "compiler/vectorize/widener_lanes.h"

namespace kiln::widening {

class Arithmetic {
 public:
  /// `checks` finds the lanes in which a bounds guard holds without comparing vectors.
  Arithmetic(AddressChecks& checks, Lanes& lanes)
      : isa_(lanes.vector_isa()), checks_(checks), lanes_(lanes), layout_(lanes.layout()) {}

  /// The instruction's vector, without its flags. Null if the lanes must run the instruction one after the other.
  Value* widen(Instruction& instruction, IRBuilder<>& builder);

  /// Sets the vectors of the results, and of whether each overflows its type.
  void widen_checked(WithOverflowInst& call, IRBuilder<>& builder);

 private:
  Value* widen_division(BinaryOperator& division, IRBuilder<>& builder);
  Value* without_zeros(Value* divisor, IRBuilder<>& builder, unsigned depth = 0);
  Value* zero_unless(Instruction& select, IRBuilder<>& builder);
  Value* widen_saturating_conversion(IntrinsicInst& call, IRBuilder<>& builder);
  Value* widen_intrinsic(IntrinsicInst& call, IRBuilder<>& builder);

  const VectorIsa& isa_;
  AddressChecks& checks_;
  Lanes& lanes_;
  const DataLayout& layout_;
};

}  // namespace kiln::widening
