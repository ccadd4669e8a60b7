// Deferred reductions: lane sums that each simdgroup of a loop computes and stores are added up together after the
// loop.
//
// Nearly every kernel in which a threadgroup cooperates adds up the lanes of each simdgroup, stores each simdgroup's
// sum into threadgroup memory, and lets one simdgroup add up those. A loop over simdgroups that is too long to unroll
// would compute one sum at a time, each a chain of shuffles and additions. It would pass them on as scalar stores to
// memory that is then loaded as a vector, which must wait for the stores to leave the store buffer. Here the loop
// stores one register of each simdgroup's partial sums. They are added up after the loop, eight simdgroups at a time
// (lane_reductions.h), so that the sums are adjacent in a register.
//
// An RMS norm of cached rows of 1,024 takes 0.88 of its time with this and 4 x 4 transposes (lane_layouts.h).
#pragma once

#include <llvm/IR/PassManager.h>

#include "compiler/ir/vector_isa.h"

namespace kiln {

/// For a threadgroup's function; registers have 8 or 16 elements of 32 bits. Returns whether there was a sum.
bool defer_reductions(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, const VectorIsa& vector_isa);

}  // namespace kiln
