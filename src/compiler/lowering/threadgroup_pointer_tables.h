// Constants that hold addresses in threadgroup memory become variables of the thread.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

// Clang makes a constant of the initializer of `threadgroup float* halves[2] = {s, s + 8}`: to Clang, the address of
// `s` is fixed. It differs for each threadgroup, so the thread stores the addresses itself.
void unfold_threadgroup_pointer_tables(llvm::Function& body);

}  // namespace kiln
