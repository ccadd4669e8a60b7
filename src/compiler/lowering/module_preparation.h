// What is done to Clang's module before any other pass.
#pragma once

#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Module.h>

#include <cstdint>

namespace kiln {

/// Gives the module the target's data layout, and removes the processor and the features that Clang compiled for. The
/// target machine knows its own: LLVM would parse the list of features, and make its tables of the processor, again for
/// each kind of function.
void set_layout(llvm::Module& module, const llvm::DataLayout& layout);

/// Gives all `extern __shared__` arrays the same memory of so many bytes.
void define_dynamic_memory(llvm::Module& module, uint64_t bytes);

}  // namespace kiln
