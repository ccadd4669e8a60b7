// Guarded accesses as predicated instructions.
//
// A guard (lowering/bounds_guards.h) chooses between the address and memory of Kiln's own. A GPU does better: an
// instruction whose predicate is false is not there. LLVM has no such instructions for this target, and a branch around
// each access would keep what follows from being moved before it, in LLVM at least; so they are written as assembly,
// which LLVM takes for arithmetic where the memory does not change while the launch runs.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

namespace kiln {

/// `function` is optimised, and its pointers have the address spaces that are known. What has no such form stays a
/// choice between addresses.
void predicate_accesses(llvm::Function& function);

/// Whether `pointer` is memory of Kiln's own, which a guard chooses where the access is not allowed.
bool is_own_memory(const llvm::Value* pointer);

/// Whether predicate_update() has a form for it: nobody wants the old value, it has no order, and there is such an
/// instruction.
bool can_be_predicated(const llvm::AtomicRMWInst& update);

/// Replaces it with one that is done where `condition` holds. The condition is the first operand of what is returned.
llvm::CallInst* predicate_update(llvm::AtomicRMWInst& update, llvm::Value* condition);

}  // namespace kiln
