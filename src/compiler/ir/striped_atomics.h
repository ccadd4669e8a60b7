// Atomic operations on a row of floats that other threads may change, too: calls of functions that the process has
// (`CpuRowUpdate`, core/cpu_image.h), so that a kernel has no code for them.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <optional>

namespace kiln {

/// Where a guard lets through what begins before `limit`, and the row begins at `offset`. (A guard that compares
/// numbers without a sign keeps out what is below zero, too.)
struct RangeGuard {
  llvm::Value* offset;  // i64, in bytes, in which the row's elements do not wrap
  llvm::Value* limit;   // i64, below 2^62
};

/// An array that nobody uses but by such functions.
struct UpdatedArray {
  llvm::Value *launch, *begin;  // CpuLaunch, and where the array's elements begin
};

/// Whether there is a function that does what `atomic` does, of which nobody gets what was there before.
bool is_striped_update(const llvm::AtomicRMWInst& atomic);

/// What `atomic` does to a float, for each lane of the bits `lanes` that the guard lets through to its element behind
/// `row`, lane 0's, with its operand behind `operands`.
llvm::CallInst* update_striped_range(const llvm::AtomicRMWInst& atomic, llvm::Value* row, llvm::Value* operands,
                                     llvm::Value* lanes, const std::optional<RangeGuard>& guard,
                                     const std::optional<UpdatedArray>& array, llvm::IRBuilder<>& builder);

/// The row's address, if that is what the instruction does; else null.
llvm::Value* striped_range(const llvm::Instruction& instruction);

/// Whether it does so to an array that nobody uses otherwise.
bool wants_row_locks(const llvm::Instruction& instruction);

}  // namespace kiln
