// Splits phis of structures, such as the result of a guarded compare-exchange, into phis of their components.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Replaces phis of structures of which only components are used.
void split_structure_phis(llvm::Function& function);

}  // namespace kiln
