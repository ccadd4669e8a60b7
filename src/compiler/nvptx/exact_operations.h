// Operations for which LLVM's code for this target is longer than needed, or guarantees less than Metal does.
#pragma once

#include <llvm/IR/Function.h>

#include "kiln/compilation.h"

namespace kiln {

/// Metal's atomic functions take volatile objects. LLVM does not apply what it infers about a pointer to a volatile
/// access.
void drop_volatile_atomics(llvm::Function& function);

/// Conversions of floats to integers become the hardware's own, which saturate as in Metal bodies
/// (docs/design/meaning.md). Ordered atomics become relaxed ones between fences, since LLVM drops the order of a
/// read-modify-write. Divisions and square roots become approximate if the math mode and the operation's flags allow
/// it.
void use_hardware_operations(llvm::Function& function, MathMode mode);

}  // namespace kiln
