// Loads whose result is masked afterwards.
//
// Bodies often read first, wherever that is, and mask what they must not use: `v = x[i]; v = in_image ? v : 0`. A
// guarded load reads zeros instead of what lies outside; what the body would mask reads them too, and the mask is gone.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// `function` has guards (lowering/bounds_guards.h) and is optimised.
void mask_at_loads(llvm::Function& function);

}  // namespace kiln
