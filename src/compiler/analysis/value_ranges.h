// Interval analysis: the range of an integer, and of a pointer's offset from the start of the variable that it points
// into.
//
// Problem: most indices of private and threadgroup arrays are in bounds. A bounds check that is proved redundant must
// leave no instruction behind. The proof comes before loops are unrolled, since a guarded variable is promoted later or
// never.
//
// Idea: abstract interpretation over SSA with intervals (llvm::ConstantRange). Conditions of dominating branches narrow
// the values that they compare. Phis at loop headers are widened after two rounds; narrowing recovers what conditions
// keep finite. A phi that advances by a constant is bounded by the trip count that another phi of its loop implies.
// Values computed by the same operation from the same operands are one value: Clang computes `t.x` anew at each use.
//
// Rejected: ScalarEvolution handles loops but no conditions between other values, and assumes that loops end (a body
// that does not end must not leave its memory either). LazyValueInfo gives up at phis of loops. InstCombine and
// EarlyCSE before the guards would change the code that the engines get.
//
// Complexity: linear in the function for each round; at most kRounds rounds, kFacts conditions for each value.
#pragma once

#include <llvm/IR/ConstantRange.h>
#include <llvm/IR/Function.h>

#include <memory>

#include "compiler/ir/thread_ranges.h"

namespace kiln {

class ValueRanges {
 public:
  /// `function` has everything inlined and its variables promoted; operations wrap only modulo 2^n.
  ValueRanges(llvm::Function& function, const ThreadLimits& limits);
  ~ValueRanges();

  /// The range of an integer of at most 64 bits whenever `block` runs. Of a pointer that of its offset in bytes from
  /// the start of its variable, modulo 2^64; one that is computed through integers or loaded from memory may have any.
  llvm::ConstantRange range_at(llvm::Value* value, llvm::BasicBlock* block);

 private:
  class Analysis;
  std::unique_ptr<Analysis> analysis_;
};

}  // namespace kiln
