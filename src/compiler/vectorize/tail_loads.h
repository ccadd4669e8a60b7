// Consecutive loads that a guard allows in part, or not at all: beyond the end of an array.
//
// Few simdgroups execute one, and each consecutive load needs code for it: a mask, or without masked instructions a
// loop over lanes. With one function for them a grid sample takes an eighth less to compile with masked loads, a fifth
// less without.
//
// Rejected: the same for stores. Most bodies have one store, so that it gains nothing with masked stores and a fiftieth
// without. Kernels with barriers do not use it either: the passes that order barriers' loops know loads and masks.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

namespace kiln {

/// A vector of `element`, which has no padding. A lane's element, of those consecutive from `address` on, is loaded if
/// it begins before `limit`, otherwise it is zero. `address` is at `offset`; `offset` and `limit` are i64, in bytes,
/// compared unsigned.
llvm::CallInst* load_tail(llvm::Type& element, llvm::Value* address, llvm::Value* offset, llvm::Value* limit,
                          llvm::IRBuilder<>& builder);

}  // namespace kiln
