// Interval analysis: which values an integer may have, and how far a pointer may be from the variable that it points
// into.
//
// Problem: most indices of private and threadgroup arrays lie inside. A bounds check that can be proved must leave no
// instruction behind, and it is proved before loops are unrolled, since a guarded variable is promoted later or never.
//
// Idea: abstract interpretation over SSA with intervals (llvm::ConstantRange). Conditions of branches that dominate a
// block narrow what they compare. Phis at loop headers are widened after two rounds; what conditions keep finite comes
// back by narrowing. A phi that advances by a constant is bounded by the trip count that another one of its loop shows.
// Values that are computed in the same way from the same operands are one value: Clang computes `t.x` anew at each use.
//
// Rejected: ScalarEvolution knows loops but no conditions between other values, and assumes that loops end (a body that
// does not end must not leave its memory either). LazyValueInfo gives up at phis of loops. InstCombine and EarlyCSE
// before the guards would change what the engines see.
//
// Complexity: linear in the function for each round; at most kRounds rounds, kFacts conditions for each value.
#pragma once

#include <llvm/IR/ConstantRange.h>
#include <llvm/IR/Function.h>

#include <memory>

#include "compiler/analysis/thread_ranges.h"

namespace kiln {

class ValueRanges {
 public:
  /// `function` has everything inlined and its variables promoted; no operation wraps but modulo 2^n.
  ValueRanges(llvm::Function& function, const ThreadLimits& limits);
  ~ValueRanges();

  /// Bytes from the beginning of the variable that `pointer` points into, modulo 2^64, whenever `block` runs. A pointer
  /// that is computed through integers or comes from memory may have any offset.
  llvm::ConstantRange offset_at(llvm::Value* pointer, llvm::BasicBlock* block);

 private:
  class Analysis;
  std::unique_ptr<Analysis> analysis_;
};

}  // namespace kiln
