// What threads of a simdgroup exchange, as operations on the lanes of one vector.
//
// Within a simdgroup that runs as one vector nobody waits: when the code is at an exchange, all threads that will come
// to this instance of it are there, in the mask. So `__kiln_wait` (`convergence_points.h`) becomes permutations of
// lanes, which `widen()` knows, and the combining function between them, inlined: the order is CpuExchange's.
//
// A lane that takes no part counts as one with the identity. What is combined is therefore computed for all 32 lanes,
// also where the exchange stands under a mask, and a combining function must not branch.
//
// Barriers of the threadgroup stay. Those of a simdgroup order memory while code of one thread is optimised, and are
// dropped by `widen()`.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/Function.h>

#include <string>

#include "compiler/ir/convergence_point.h"

namespace kiln {

/// Returns why it cannot be done, or nothing.
std::string lower_collectives(llvm::Function& function, llvm::ArrayRef<ConvergencePoint> sites);

}  // namespace kiln
