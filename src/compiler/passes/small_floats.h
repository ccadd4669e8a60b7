// bfloat arithmetic as float arithmetic, rounded to bfloat after each operation.
//
// Processors either have no such instructions or round in their own way (AVX-512's conversion flushes subnormals), and
// LLVM would call a function for each conversion. Written out in the IR, before any optimisation, it is the same on
// every target.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

void expand_bfloat(llvm::Module& module);

}  // namespace kiln
