// Bitcasts between a vector of the kernel and a number, or a vector of another length, as Clang passes small vectors to
// functions.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Expands them to shifts of the components: once vectors are split into values, no value has all their bits.
void spell_out_bitcasts(llvm::Function& function);

}  // namespace kiln
