// Reuse barriers: missing barriers before threadgroup memory is overwritten.
//
// Published kernels omit a barrier: simdgroups read what others have written, combine it (`simd_max`) and write new
// values to the same addresses, without waiting until the others have read the old ones. On a GPU simdgroups run side
// by side, and all have read when the first one writes, some dozens of instructions later. On the CPU one simdgroup
// runs after the other. Without a barrier each simdgroup but the first would read what the previous one has written.
// Such kernels have a race by Metal's rules, but their intent is plain, and their results on a Mac are right.
//
// So a collective between a read and a write of one threadgroup variable gets a barrier, if all threads of the
// threadgroup reach it or have returned before. A redundant barrier is harmless but takes time: kernels with a barrier
// of their own there get none.
//
// The scalar engine needs none: its threads suspend at each collective, and all of a threadgroup's threads reach one
// before any resumes.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// `body` is the function of one thread, with collectives and barriers as calls of the front end's functions.
void add_reuse_barriers(llvm::Function& body);

}  // namespace kiln
