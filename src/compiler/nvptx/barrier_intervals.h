// Intervals between barriers: which accesses of a threadgroup variable a thread makes between two barriers.
//
// Between barriers, no thread may count on what another one does. If all accesses of a variable in an interval are the
// stores of copies, it does not matter which thread makes which of them, nor when, as long as all are done at the
// barriers that end the interval.
//
// Complexity: a walk over the blocks from which, and to which, paths without a barrier lead.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Instructions.h>

#include <optional>

namespace kiln {

/// Whether the instruction is a barrier of the threadgroup, once it is lowered.
bool is_hardware_barrier(const llvm::Instruction& instruction);

/// Whether a path without a barrier leads from the block's beginning to the other block's.
bool reaches_without_barrier(llvm::BasicBlock& from, const llvm::BasicBlock& to);

/// The threadgroup variable in which the address certainly is; null where that is not known.
llvm::GlobalVariable* threadgroup_variable_of(llvm::Value& address);

struct BarrierInterval {
  llvm::SmallVector<llvm::Instruction*> barriers;  // that end it
  bool is_repeated = false;                        // a path leads from the stores to themselves without a barrier
};

/// `stores` are in one block without a barrier between them, and all write to `variable`. Returns their interval if
/// nothing else accesses `variable` on any path from a barrier, or the function's beginning, through them to the next
/// barriers, and each path from them leads to a barrier.
std::optional<BarrierInterval> interval_of_lone_stores(const llvm::GlobalVariable& variable,
                                                       llvm::ArrayRef<llvm::Instruction*> stores);

}  // namespace kiln
