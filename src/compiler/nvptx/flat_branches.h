// Short branches as predicates.
//
// Code behind a branch that threads may take differently begins when the branch is decided and ends before anything
// else begins; so the loads of four such branches wait one after the other, where a GPU could have all of them on the
// way. Where a branch keeps little, its accesses get its condition as another predicate, and the rest is computed by
// all threads.
//
// `ptxas` does that too, but not where a guard makes a second branch inside, as it does around an atomic.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// `function` is optimised, has guards as choices between addresses, and its pointers have the address spaces that are
/// known. predicate_accesses() is to follow.
void flatten_short_branches(llvm::Function& function);

}  // namespace kiln
