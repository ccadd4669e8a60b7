// Checks that a range of bytes belongs to an argument of the launch, for accesses without a guard.
//
// Problem: a condition of the body often proves an access to be in bounds, so that it has no guard: `if (x > 0 && x <
// w) v = image[y * w + x];`. Where the condition differs between lanes, nothing is known of the elements of inactive
// lanes, and without masked loads of their size the active lanes would load one by one.
//
// Idea: the launch knows where each of its arguments begins and ends. If the elements of all lanes are in the argument,
// all are loaded, those of inactive lanes too, which nobody uses.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>

#include "compiler/vectorize/widener_lanes.h"

namespace kiln::widening {

/// Whether the value is the launch's pointer to its arguments (CpuLaunch::arguments).
bool is_arguments_of_launch(const Value& value, const Function& function);

class ArgumentBounds {
 public:
  ArgumentBounds(const Function& from, Lanes& lanes) : from_(from), lanes_(lanes) {}

  /// An i1: whether the `bytes` bytes from `address` on belong to the argument into which `pointer`, of the thread's
  /// code, points. Null if that argument is not known. Constant time, but for the length of the address's computation.
  Value* contain(Value* pointer, Value* address, uint64_t bytes, IRBuilder<>& builder);

 private:
  struct Range {
    Value *begin, *bytes;
  };

  const Function& from_;
  Lanes& lanes_;
  DenseMap<uint64_t, Range> ranges_;  // by the argument's offset among all
};

}  // namespace kiln::widening
