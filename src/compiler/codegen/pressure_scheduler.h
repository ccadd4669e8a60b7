// The order of a block's instructions by which few vectors are wanted at a time.
//
// The code of several simdgroups, or of several registers of one, goes through them step by step: each step's results
// wait for the next step of all others. Where there are more of them than registers, each is stored and loaded at each
// step. Here what one result needs is computed to its end before the next one begins.
//
// Rows that are loaded, become others and are stored are put in this order however many registers there are: loads and
// stores lie all over the code then, so that memory is busy while it computes. As each result is a chain that waits for
// itself, the next one begins before it ends. In a loop eight are loaded before one of them is stored, if registers
// suffice: an Emerald Rapids lets what is loaded wait for stores before it to addresses that end with the same 12 bits,
// and an RMS norm whose output lies 16 to 64 bytes beyond a multiple of 4 KiB behind its input takes up to 1.8 times as
// long with AVX2 where each is stored at once; on a Zen 4 both take the same.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Of such blocks; their vectors are cut to registers of `lanes` elements of 32 bits (split_vectors.h). `are_few`: also
/// of blocks whose vectors do not fit into `registers`; otherwise also of loops of a few sums, which are computed in
/// turns. LLVM's scheduler comes behind it and begins with this order.
void schedule_for_pressure(llvm::Function& function, unsigned registers, unsigned lanes, bool are_few);

}  // namespace kiln
