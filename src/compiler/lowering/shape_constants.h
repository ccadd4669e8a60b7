// Shapes, strides and ranks that code is made for, as constants.
//
// A body divides by shapes to find its place, which costs more than what it computes there; divided by a constant it is
// a shift or a product. So where a unit says what these arguments hold, reads of them at constant indices are replaced.
// Others are left: the arguments themselves are the same as without.
#pragma once

#include <llvm/IR/Function.h>

#include "core/kernel_unit.h"

namespace kiln {

/// `body` has three arguments for each of the unit's parameters (kBodyFunction); its allocas are promoted.
void replace_known_shapes(llvm::Function& body, const KernelUnit& unit);

}  // namespace kiln
