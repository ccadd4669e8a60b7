// Guarded accesses as predicated instructions.
//
// A guard (lowering/bounds_guards.h) selects between the address and memory of Kiln's own. A GPU does better: an
// instruction whose predicate is false has no effect. LLVM has no such instructions for this target, and a branch
// around each access would keep LLVM at least from moving later code before it. So they are written as inline assembly,
// which LLVM treats as arithmetic if the memory does not change while the launch runs.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

namespace kiln {

/// `function` is optimized, and its pointers have the address spaces that are known. Accesses without a predicated form
/// keep their select of addresses.
void predicate_accesses(llvm::Function& function);

/// Whether `pointer` is memory of Kiln's own, which a guard selects if the access is out of bounds.
bool is_own_memory(const llvm::Value* pointer);

/// Whether predicate_update() has a form for the update: the old value is dead, the update is relaxed, and PTX has such
/// an instruction.
bool can_be_predicated(const llvm::AtomicRMWInst& update);

/// Whether PTX loads the value in one instruction, as predicate_accesses() then writes it.
bool can_be_predicated(const llvm::LoadInst& load);

/// Replaces the update with one that is done if `condition` holds. The condition is the first operand of the result.
llvm::CallInst* predicate_update(llvm::AtomicRMWInst& update, llvm::Value* condition);

}  // namespace kiln
