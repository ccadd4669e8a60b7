// The order of a block's instructions by which few vectors are wanted at a time.
//
// The code of several simdgroups, or of several registers of one, goes through them step by step: each step's results
// wait for the next step of all others. Where there are more of them than registers, each is stored and loaded at each
// step. Here what one result needs is computed to its end before the next one begins.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Of blocks whose vectors do not fit into `registers` of `lanes` elements of 32 bits; these are cut (cut_vectors.h).
/// LLVM's scheduler comes behind it and begins with this order.
void finish_chains(llvm::Function& function, unsigned registers, unsigned lanes);

}  // namespace kiln
