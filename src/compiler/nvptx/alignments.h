// What is known of where accesses begin.
//
// An access that is not aligned to its size ends the program on a GPU, and Clang takes from a pointer's type what a
// body's cast has made up: `*(device half2*)((device half*)x + 1)`. So an access is said to be aligned as far as can be
// shown, from where its pointer comes from and what was added to it; what is left LLVM takes apart.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

void claim_known_alignments(llvm::Function& function);

}  // namespace kiln
