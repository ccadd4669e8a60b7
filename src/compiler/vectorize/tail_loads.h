// Rows that a guard lets through in part, or not at all: beyond the end of an array.
//
// Few simdgroups meet one, and each place that reads a row needs code for it: a mask, or where there are no
// instructions with masks a loop over lanes. With one function for them a grid sample takes an eighth less to compile
// with AVX-512, a fifth less with AVX2.
//
// Rejected: the same for stores, of which most bodies have one, so that it gains nothing with AVX-512 and a fiftieth
// with AVX2. Not in kernels with barriers either: the passes that put barriers' loops in order know loads and masks.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

namespace kiln {

/// A vector of `element`, which has no padding, for each lane: what of a row from `row` on begins before `limit`, where
/// the row begins at `offset` (both i64, in bytes; compared without a sign), and zero for the others.
llvm::CallInst* load_edge_row(llvm::Type& element, llvm::Value* row, llvm::Value* offset, llvm::Value* limit,
                              llvm::IRBuilder<>& builder);

}  // namespace kiln
