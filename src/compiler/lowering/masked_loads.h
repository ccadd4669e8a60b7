// Merges masks on the results of guarded loads into the guards.
//
// Bodies often load first, from any address, and mask values that they must not use: `v = x[i]; v = in_image ? v : 0`.
// A guarded load reads zeros instead of memory that is out of bounds. With the mask in its guard it reads zeros for
// masked values too, and the mask is removed.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// `function` has guards (lowering/bounds_guards.h) and is optimised.
void mask_at_loads(llvm::Function& function);

}  // namespace kiln
