// Promotion of variables to registers before accesses are guarded (bounds_guards.h).
//
// SROA takes an access outside of a variable for something that never happens: a load gives poison, a store goes, and a
// pointer that would lie outside is one to nothing. A load outside gives zero, though. So what is known to be outside
// is replaced first, and what SROA might come to know while it runs, an index that was a variable, is hidden from it.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

/// SROA of all functions, which keeps their control flow.
void promote_variables(llvm::Module& module);

}  // namespace kiln
