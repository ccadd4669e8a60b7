// Alignments of accesses, as they can be proved.
//
// A misaligned access ends the program on a GPU, and Clang takes alignments from pointer types, which a body's cast may
// have made up: `*(device half2*)((device half*)x + 1)`. This pass therefore sets the alignment of an access to what
// follows from its pointer's origin and the offsets added to it. LLVM splits accesses whose alignment then does not
// suffice, and merges adjacent ones whose alignment does: it looks once addresses are counters of loops, whose
// alignment it no longer sees.
#pragma once

#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Function.h>
#include <llvm/Support/Alignment.h>

namespace kiln {

/// At most 16.
llvm::Align known_alignment(llvm::Value& pointer, const llvm::DataLayout& layout);

void set_known_alignments(llvm::Function& function);

}  // namespace kiln
