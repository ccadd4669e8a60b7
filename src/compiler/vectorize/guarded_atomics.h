// Floats that are added to atomically behind a guard, as stores are: the guard chooses the address, not the way.
//
// A guard on an atomic is a branch (bounds_guards.h). Of 32 lanes that add to a row, it would be the mask of those that
// it lets through, which is made and asked before the row is touched. Where the guard chooses between the address and a
// sink, as a store's does, the row is asked as a whole, and who shares it counts its lanes (striped_atomics.h), so that
// there is less to compile.
//
// Only of what nobody gets the former value of, and not before code of one thread is done with: for other engines and
// targets a branch is better.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

class Divergence;

/// Whether there were any. The guards' conditions that are the same in all threads stay branches.
bool select_guarded_addresses(llvm::Function& function, const Divergence& divergence);

}  // namespace kiln
