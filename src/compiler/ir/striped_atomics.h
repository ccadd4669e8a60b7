// Atomic operations on consecutive floats that other threads may change, too, under striped locks. They are calls of
// functions of the process (`CpuRowUpdate`, core/cpu_image.h), so that a kernel contains no code for them.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <optional>

namespace kiln {

/// A bounds guard that passes lanes whose element begins below `limit`; lane 0's begins at `offset`. (A guard that
/// compares unsigned numbers also keeps out negative offsets.)
struct RangeGuard {
  llvm::Value* offset;  // i64, in bytes; the offsets of all lanes do not wrap
  llvm::Value* limit;   // i64, below 2^62
};

/// An array that only such functions access.
struct UpdatedArray {
  llvm::Value *launch, *begin;  // CpuLaunch, and the address of the array's first element
};

/// Whether a function exists that does what `atomic` does, and the old value is dead.
bool is_striped_update(const llvm::AtomicRMWInst& atomic);

/// Does what `atomic` does to a float, for each lane of the mask `lanes` that passes the guard. `row` is the address of
/// lane 0's element, and `operands` that of lane 0's operand.
llvm::CallInst* update_striped_range(const llvm::AtomicRMWInst& atomic, llvm::Value* row, llvm::Value* operands,
                                     llvm::Value* lanes, const std::optional<RangeGuard>& guard,
                                     const std::optional<UpdatedArray>& array, llvm::IRBuilder<>& builder);

/// The address of lane 0's element if the instruction is such a call; else null.
llvm::Value* striped_range(const llvm::Instruction& instruction);

/// Whether the instruction is such a call on an array that only such calls access.
bool uses_striped_lock(const llvm::Instruction& instruction);

}  // namespace kiln
