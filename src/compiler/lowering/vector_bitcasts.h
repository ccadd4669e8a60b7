// Casts between a kernel's own vector and a number, or a vector of another length, of the same bits, as Clang passes
// small vectors to functions.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Writes them as shifts of the components: where vectors become so many values, no value has their bits together.
void spell_out_bitcasts(llvm::Function& function);

}  // namespace kiln
