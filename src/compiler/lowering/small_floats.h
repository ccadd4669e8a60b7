// bfloat arithmetic as float arithmetic, rounded to bfloat after each operation.
//
// Processors either have no such instructions or round in their own way (AVX-512's conversion flushes subnormals), and
// LLVM would call a function for each conversion. Written out in the IR, before any optimisation, it is the same on
// every target.
//
// LLVM's code generator would call that function even where a bfloat is only chosen between or its sign is flipped, and
// it sees a flipped sign in the integer operations that say it. So at the end, before code is generated, no value is a
// bfloat any more: what is left of them, which only moves bits, moves integers.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

/// Writes out arithmetic. Before any optimisation.
void expand_bfloat(llvm::Module& module);

/// Replaces bfloats by integers of the same bits. After all optimisation.
void remove_bfloat(llvm::Module& module);

/// The same in one function, whose arithmetic is written out.
void remove_bfloat(llvm::Function& function);

/// Lets what chooses the larger or smaller of two halves choose between their bits. After all optimisation, for x86:
/// LLVM's code generator makes a maximum of it, and a call of `fmaxf` of that.
void choose_halves_by_bits(llvm::Module& module);

}  // namespace kiln
