// Loads of shapes and of numbers that are passed by reference.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Marks such loads as invariant, which they lose when a pass merges the sides of a branch. They are uniform in all
/// iterations of a loop that threads leave one by one, and so uniform after it. Returns whether it marked one. Linear.
bool mark_reference_loads(llvm::Function& function);

}  // namespace kiln
