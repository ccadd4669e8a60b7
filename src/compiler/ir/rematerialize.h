// Rematerialization of values that cost more to keep live than to compute at their uses: loads from the launch's
// arguments, and values a few instructions away from them.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instruction.h>

namespace kiln {

/// Whether an operand is available without computation wherever its user is needed.
using IsThere = llvm::function_ref<bool(const llvm::Use& operand)>;

bool can_be_rematerialized(const llvm::Instruction& value, IsThere is_there);

/// Inserts at the builder's insertion point.
llvm::Value* rematerialize(llvm::Instruction& value, IsThere is_there, llvm::IRBuilder<>& builder);

}  // namespace kiln
