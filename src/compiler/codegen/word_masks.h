// Masks as vectors of words, for processors that have no registers for masks.
//
// Problem: the result of comparing words is a vector of words there, and masked accesses and selects of words take such
// a vector. Between the two, a conjunction of comparisons, a phi or a mask that another block uses is a vector of 32
// booleans, which LLVM's code generator makes one of bytes: it packs the four registers of each comparison, and unpacks
// the mask for each access.
//
// Idea: booleans that are made of comparisons of words, and that select or mask words, are computed as words whose bits
// are all equal. A use is a comparison with 0, which the code generator drops where words are selected or masked, since
// such a mask is the words' signs.
//
// Rejected: the same in the widener, which does it for masks of loops that lanes leave (widener_flow.cpp). Half of the
// conjunctions are the body's own, and InstCombine makes booleans of what is words again.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Runs after all optimization. Linear in the code. Returns whether there were such booleans.
bool widen_masks_to_words(llvm::Function& function);

}  // namespace kiln
