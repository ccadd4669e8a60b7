// Promotion of variables to registers before accesses are guarded (bounds_guards.h).
//
// SROA treats an access outside of a variable as undefined: a load gives poison, a store is removed, and a pointer that
// would point outside becomes poison. In Kiln a load outside gives zero. So accesses that are known to be outside are
// replaced first. An index in a variable, which SROA may learn while it runs, is hidden from it.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

/// Runs SROA on all functions and keeps their control flow.
void promote_variables(llvm::Module& module);

}  // namespace kiln
