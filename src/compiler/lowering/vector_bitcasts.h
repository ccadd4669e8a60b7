// Bitcasts between a vector of the kernel and a number, or a vector of another length, as Clang passes small vectors to
// functions.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Expands them to shifts of the components: once vectors are split into values, no value has all their bits.
void spell_out_bitcasts(llvm::Function& function);

/// Takes components of a vector that was cast to a number as components of the vector, where the code takes them as the
/// number's bits: what is known of a component (the range of `thread_position_in_threadgroup.y`, after `.xy`) stays
/// known. Linear in the function's length.
void extract_components(llvm::Function& function);

}  // namespace kiln
