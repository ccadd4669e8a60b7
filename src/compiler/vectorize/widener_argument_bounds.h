// The bytes of the launch's arguments, for checks of accesses without a guard.
//
// Problem: a condition of the body often proves an access to be in bounds, so that it has no guard: `if (x > 0 && x <
// w) v = image[y * w + x];`. Where the condition differs between lanes, nothing is known of the elements of inactive
// lanes, and without masked loads of their size the active lanes would load one by one.
//
// Idea: the launch knows where each of its arguments begins and ends. If the elements of all lanes are in the argument,
// the widener loads all of them; those of inactive lanes are unused.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>

#include <optional>

#include "compiler/vectorize/widener_lanes.h"

namespace kiln::widening {

/// Whether the value is the launch's pointer to its arguments (CpuLaunch::arguments).
bool is_arguments_of_launch(const Value& value, const Function& function);

// Numbers of 64 bits, which are known from the function's entry on.
struct ArgumentRange {
  Value *begin, *bytes;
};

class ArgumentBounds {
 public:
  ArgumentBounds(const Function& from, Lanes& lanes) : from_(from), lanes_(lanes) {}

  /// The argument into which `pointer`, of the thread's code, points; nothing if it is not known. Constant time, but
  /// for the length of the address's computation.
  std::optional<ArgumentRange> range_of(Value* pointer);

 private:
  const Function& from_;
  Lanes& lanes_;
  DenseMap<uint64_t, ArgumentRange> ranges_;  // by the argument's offset among all
};

}  // namespace kiln::widening
