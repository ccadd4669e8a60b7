// Lowers the collectives of a simdgroup to operations on the lanes of one vector.
//
// A simdgroup that runs as one vector never waits at a collective: all threads that will reach this instance of it are
// there, in the mask. So `__kiln_wait` (`convergence_points.h`) becomes lane permutations, which `widen()` supports,
// with the combining function inlined between them, in the order of CpuExchange.
//
// An inactive lane counts as one with the identity. Combining is therefore computed for all 32 lanes, even if the
// collective is under a mask, and a combining function must not branch.
//
// Barriers of the threadgroup stay. Barriers of a simdgroup order memory while code of one thread is optimised;
// `widen()` drops them.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/Function.h>

#include <string>

#include "compiler/ir/convergence_point.h"

namespace kiln {

/// Returns the reason if it is impossible, or nothing.
std::string lower_collectives(llvm::Function& function, llvm::ArrayRef<ConvergencePoint> points);

}  // namespace kiln
