// If-conversion of short branches to predicates.
//
// Code after a divergent branch begins when the branch is decided and ends before any other code begins. So the loads
// of four such branches wait one after the other, where a GPU could have all of them in flight. If a branch's side is
// short, its accesses get its condition as another predicate, and all threads compute the rest.
//
// `ptxas` does that too, but not if a guard makes a second branch inside, as around an atomic.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// `function` is optimized, its guards are selects of addresses, and its pointers have the address spaces that are
/// known. predicate_accesses() must follow.
void flatten_short_branches(llvm::Function& function);

}  // namespace kiln
