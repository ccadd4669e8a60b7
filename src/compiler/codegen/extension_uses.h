// Keeps CodeGenPrepare linear where an index and its extension are both used in many blocks.
//
// A thread's index has 32 bits, and the addresses that are computed from it have 64. Where both live on, CodeGenPrepare
// (LLVM 19, optimizeExtUses) makes truncations of the extension out of the uses of the index, so that one register
// holds both. It walks a list of uses that it changes, so each visit changes a single use and all blocks are visited
// once for each. This pass changes all of them at once; the code is the same.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Where an integer of 32 bits has 64 uses or more and its extension to 64 bits is live out of their common block, the
/// uses in other blocks become those of a truncation, one a block. Truncation must be free, as on x86-64 and NVIDIA's
/// GPUs. Linear in the function's length.
void truncate_extended_values(llvm::Function& function);

}  // namespace kiln
