// Keeps CodeGenPrepare linear where an index and its extension are both used in many blocks.
//
// A thread's index has 32 bits, and the addresses computed from it have 64. Where both are live across blocks,
// CodeGenPrepare (LLVM 19, optimizeExtUses) rewrites uses of the index as truncations of the extension, so that one
// register holds both. It walks a use list while changing it, so each visit changes a single use, and all blocks are
// visited once for each use. This pass changes all uses at once; the code is the same.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// If an integer of 32 bits has 64 uses or more and its extension to 64 bits is live out of their common block, its
/// uses in other blocks become uses of a truncation, one for each block. Truncation must be free, as it is where
/// instructions can use a register's lower half. Linear in the function's length.
void truncate_extended_values(llvm::Function& function);

}  // namespace kiln
