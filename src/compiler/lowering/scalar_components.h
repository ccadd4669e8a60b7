// Vectors of the kernel's own as their components, which the widener makes vectors of 32 lanes.
#pragma once

#include <llvm/IR/Function.h>

#include "compiler/ir/pass_runner.h"

namespace kiln {

/// Linear in the function's length.
void split_into_components(llvm::Function& function, PassRunner& runner);

}  // namespace kiln
