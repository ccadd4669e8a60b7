// Splits structures in private memory that hold pointers.
//
// LLVM keeps a structure in memory as a whole if one of its arrays is indexed at run time. A pointer beside the array
// then goes through memory, and the argument that it points into is lost. Each member becomes a variable of its own;
// members that are not arrays are promoted to registers.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// `body` has everything inlined and its variables promoted as far as LLVM does it.
void split_structures(llvm::Function& body);

}  // namespace kiln
