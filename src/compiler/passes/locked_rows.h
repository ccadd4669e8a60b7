// Atomic operations on a row of floats that other threads may change too.
//
// Floats have no atomic instructions: an operation compares and exchanges until nobody came between. That takes as long
// for two floats as for one, where they lie in one word of 64 bits; elements may be exchanged in any company, as long
// as each one is at once. So a row that begins at such a word is exchanged in pairs, and any other a lane at a time.
//
// Both are loops in which a loop waits its turn. A grid sample's gradient has four such rows: with one function for
// them it takes a twelfth less to compile with AVX-512, an eighth less with AVX2.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <optional>

namespace kiln {

/// Where a guard lets through what begins before `limit`, and the row begins at `offset`. (A guard that compares
/// numbers without a sign keeps out what is below zero, too.)
struct RowGuard {
  llvm::Value* offset;  // i64, in bytes, in which the row's elements do not wrap
  llvm::Value* limit;   // i64, below 2^62
};

/// What `atomic` does to a float, for each lane of the bits `lanes` that the guard lets through to its element behind
/// `row`, lane 0's, with its operand behind `operands`. Nobody gets what was there before.
llvm::CallInst* update_locked_row(const llvm::AtomicRMWInst& atomic, llvm::Value* row, llvm::Value* operands,
                                  llvm::Value* lanes, const std::optional<RowGuard>& guard, llvm::IRBuilder<>& builder);

/// The row's address, if that is what the instruction does; else null.
llvm::Value* locked_row(const llvm::Instruction& instruction);

}  // namespace kiln
