// Estimates how long vector code of a body takes to compile, before it is generated.
//
// LLVM's code generator takes nine tenths of the time of a long compilation, in proportion to the number of
// instructions. Each instruction of a thread becomes several vector instructions: arithmetic as many as the result has
// registers; a consecutive access a bounds check with a fast and a slow path; any other access, without gathers, a loop
// over lanes; a divergent branch a mask, a test and a select for each value. A weighted count of these kinds predicts
// the time within a factor of two. It is a walk over the function, before control flow is structured.
//
// A body whose count is above a limit goes to the scalar engine. The limit is lower if many accesses are serialized:
// such code runs no faster on vectors than one thread after the other. It is higher in kernels with convergence points,
// at which the scalar engine suspends each thread. Kernels of ordinary length are far below: those of bench/ cost at
// most 500 without convergence points, SHA-256 in loops 1,600. SHA-256 written out in 64 rounds, which vectors speed
// up, is below.
//
// Rejected: counting the widened code, which costs a tenth of the time to be saved, and more for a switch, of which
// structuring makes one block for each pair of cases; a limit of seconds, which would make the choice depend on the
// machine's load; dividing the functions, since all of a body's values are live across them.
#pragma once

#include <llvm/IR/Function.h>

#include <cstdint>
#include <string>

#include "compiler/analysis/divergence.h"
#include "compiler/ir/vector_isa.h"

namespace kiln {

struct WideningCost {
  uint64_t vector = 0;       // divergent arithmetic
  uint64_t consecutive = 0;  // accesses at addresses that are affine in the lane index, gathers, scatters
  uint64_t serialized = 0;   // accesses that become loops over lanes
  uint64_t branches = 0;     // divergent edges

  uint64_t total() const;
};

/// Linear in the size of the function.
WideningCost widening_cost(llvm::Function& function, const Divergence& divergence, const VectorIsa& vector_isa);

/// Why the scalar engine compiles the body instead, or an empty string. Called before optimization, for bodies that
/// would take long to optimize, too.
std::string refuse_by_length(const llvm::Function& function);

/// The same, by the cost. `has_convergence_points`: threads wait for one another.
std::string refuse_by_cost(const WideningCost& cost, bool has_convergence_points);

}  // namespace kiln
