// Structures in private memory that hold pointers, taken apart.
//
// LLVM leaves a structure in memory as a whole where one of its arrays is indexed at run time. A pointer beside the
// array then goes through memory, and it is lost which argument it came from. Each member becomes a variable of its
// own; those that are not arrays go into registers.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// `body` has everything inlined, its variables are promoted as far as LLVM does it.
void split_structures(llvm::Function& body);

}  // namespace kiln
