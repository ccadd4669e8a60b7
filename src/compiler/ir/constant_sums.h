// Sums of a value and a constant, also those that are written as `or`, and whether they wrap.
#pragma once

#include <llvm/ADT/APInt.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/InstrTypes.h>

#include <optional>

namespace kiln {

struct ConstantSum {
  llvm::BinaryOperator* operation;  // an addition or an `or`
  llvm::Value* base;
  const llvm::APInt* addend;

  /// Whether it is the sum, and keeps its value if it is extended, with its sign or with zeros: by the operation's
  /// flags, or by what is known of the base's bits.
  bool never_wraps(bool is_signed, const llvm::DataLayout& layout) const;
};

/// Nothing if the value is no addition and no `or` with a constant, on either side.
std::optional<ConstantSum> constant_sum_of(llvm::Value& value);

}  // namespace kiln
