// Copies of one vector to threadgroup memory become a load and a store.
//
// Clang copies a value of a class, such as a `float4` behind a cast pointer, by `memcpy`. On a GPU, a guard around it
// is a branch, and LLVM lowers it to words of 8 bytes. A load and a store of 16 bytes have predicates, and can be
// proved, hoisted, merged, and made asynchronous (nvptx/asynchronous_copies.h) as others are. On a CPU, lanes of copies
// are interleaved accesses, which the widener knows.
//
// Rejected: copies to device memory. An output may be aligned to its elements only, and each of the stores of its
// elements then has a guard: a gathering of pages took 1.7 times as long as with one branch.
//
// Complexity: linear in the function.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Of copies of 2, 4, 8 or 16 bytes. `body` has its threadgroup variables in their section, and no bounds guards yet.
/// Returns whether there was one.
bool load_and_store_copies(llvm::Function& body);

}  // namespace kiln
