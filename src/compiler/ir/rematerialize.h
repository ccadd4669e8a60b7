// Values that are computed again where they are wanted, because keeping them costs more: what is read from the launch's
// arguments, and what takes few instructions from it.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instruction.h>

namespace kiln {

/// Whether an operand needs no computing, because its value is there wherever its user is wanted.
using IsThere = llvm::function_ref<bool(const llvm::Use& operand)>;

bool can_be_rematerialized(const llvm::Instruction& value, IsThere is_there);

/// Where the builder stands.
llvm::Value* rematerialize(llvm::Instruction& value, IsThere is_there, llvm::IRBuilder<>& builder);

}  // namespace kiln
