// Copies of one vector in memory become a load and a store.
//
// Clang copies a value of a class, such as a `float4` behind a cast pointer, by `memcpy`. On a GPU, a guard around it
// is a branch, and LLVM lowers it to words of 8 bytes. A load and a store of 16 bytes have predicates, and can be
// proved, hoisted, merged, and made asynchronous (nvptx/asynchronous_copies.h) as others are. On a CPU, lanes of copies
// are interleaved accesses, which the widener knows.
//
// Complexity: linear in the function.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Of copies of 2, 4, 8 or 16 bytes. `body` has no bounds guards yet. Returns whether there was one.
bool load_and_store_copies(llvm::Function& body);

}  // namespace kiln
