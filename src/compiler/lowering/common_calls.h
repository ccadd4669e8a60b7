// Calls of one function with the same arguments become one call, while they are calls.
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/IR/Module.h>

namespace kiln {

/// Merges calls in the function named `root`. It inlines what it has to in order to find them, and leaves the rest to
/// inline_all(). Does nothing where no function with branches is called at several places; returns whether one is.
bool merge_common_calls(llvm::Module& module, llvm::StringRef root);

}  // namespace kiln
