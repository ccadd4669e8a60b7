// Structures that are chosen between, as what a guarded compare-and-exchange gives or nothing, become their components.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Replaces phis of structures whose components alone are used.
void split_structure_phis(llvm::Function& function);

}  // namespace kiln
