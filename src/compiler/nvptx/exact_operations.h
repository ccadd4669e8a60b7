// Operations that LLVM would write longer, or with less than Metal promises, for this target.
#pragma once

#include <llvm/IR/Function.h>

#include "kiln/compilation.h"

namespace kiln {

/// Metal's atomic functions take volatile objects. LLVM keeps a volatile access from what it finds out of its pointer.
void drop_volatile_atomics(llvm::Function& function);

/// Conversions of floats to integers: the hardware's own, which saturate as Metal bodies' do (docs/design/meaning.md).
/// Orders of atomics: fences around relaxed ones, since LLVM drops the order of a read-modify-write. Where the math
/// mode and the operation's flags allow it, approximate divisions and square roots.
void use_hardware_operations(llvm::Function& function, MathMode mode);

}  // namespace kiln
