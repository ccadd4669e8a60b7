// Specializes code for shapes, strides and ranks that are known at compile time.
//
// A body divides by shapes to compute its index, which costs more than the actual work; a division by a constant is a
// shift or a product. So loads of these arguments at constant indices are replaced by the values in the unit. Other
// loads remain: the arguments themselves are unchanged.
#pragma once

#include <llvm/IR/Function.h>

#include "core/kernel_unit.h"

namespace kiln {

/// `body` has three arguments for each of the unit's parameters (kBodyFunction); its allocas are promoted.
void replace_known_shapes(llvm::Function& body, const KernelUnit& unit);

}  // namespace kiln
