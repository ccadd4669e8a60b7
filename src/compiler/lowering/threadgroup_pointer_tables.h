// Constants that hold addresses in threadgroup memory become variables of the thread.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

// Clang makes a constant of what `threadgroup float* halves[2] = {s, s + 8}` begins with: to it, `s` is a variable that
// lies at one place for ever. It lies elsewhere for each threadgroup, so the thread writes down where.
void unfold_threadgroup_pointer_tables(llvm::Function& body);

}  // namespace kiln
