// The min/max idiom of floats, in which a NaN loses to a number: `a < b || a != a ? b : a`.
#pragma once

#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <optional>

namespace kiln {

/// `select (or (a < b), (a is a NaN)), b, a`, or the same with `a > b`.
struct MinMax {
  llvm::FCmpInst* comparison;
  unsigned first;  // index of a among the comparison's operands

  // Read anew at each call: the operands may be such selects themselves, and have been replaced.
  llvm::Value* a() const { return comparison->getOperand(first); }
  llvm::Value* b() const { return comparison->getOperand(1 - first); }
};

std::optional<MinMax> min_max_of(llvm::Value* value);

/// Whether no element is a NaN: of floats, or of integers that hold their bits.
bool is_number_constant(llvm::Constant& constant);

/// For processors with instructions for `a < b ? b : a`, in which `b` wins where one is a NaN. This pass makes the NaN
/// test a select of its own, so that the comparison does not wait for it. It drops the test where `a` is never a NaN,
/// as in a loop that begins with a number.
void match_min_max(llvm::Module& module);

}  // namespace kiln
