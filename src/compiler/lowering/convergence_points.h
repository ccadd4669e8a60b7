// Convergence points: the calls at which threads wait for one another, and their order in time.
//
// Threads of a simdgroup that wait are released when they wait at the same dynamic instance of a call, the earliest
// first (docs/language.md 2.3). An instance is the call's position in the program and, for each loop around it, the
// number of the iteration. Both are made explicit here, before any optimisation: each call gets a number and the
// iteration counters as operands. Afterwards the optimiser may copy calls, unroll loops and move code freely: a copy
// still identifies its instance.
//
// "Around it" is meant as in the source: a call before a `break` belongs to the iteration that it ends, although the
// control flow graph has left the loop there. The front end has put marks before and after each loop (`loop_enter`,
// `loop_merge`). A call is inside a loop if the loop's header dominates it and its merge mark does not.
//
// A function that returns out of its loop skips the loop's mark. So each call of a function with loops has marks around
// it too (`mark_calls`): after the call, nothing is inside a loop of that function.
//
// Positions follow the order of control flow, and otherwise the order in which Clang lays out blocks. That is the
// source's, unless inlining has put a block into its predecessor. Collectives come before a barrier on another path:
// threads at the barrier wait for the others to return.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <vector>

#include "compiler/ir/convergence_point.h"

namespace kiln {

/// Puts marks around the calls of functions with loops. Runs before inlining.
void mark_calls(llvm::Module& module);

// How a call before a `break` stays in the iteration that it ends.
enum class LoopEnds {
  kCounted,  // by its counters
  kKept,     // by control flow too: a back edge that is never taken (ordering_edges.h) makes it a part of the loop
};

/// Replaces collectives and barriers in `function` (inlined, allocas promoted, otherwise as Clang made it) and removes
/// the marks. The result is indexed by the number of the convergence point.
std::vector<ConvergencePoint> number_convergence_points(llvm::Function& function, LoopEnds ends = LoopEnds::kCounted);

// Calls of kIterationFunction after a lowered collective keep the counters of its loops, while more conditions may
// become constant.

/// Marks the iteration before `collective`, if that is in a loop.
void mark_iteration(llvm::CallInst& collective);
void remove_iterations(llvm::Function& function);

enum class LoopMembership {
  kAll,   // all of them; the function is unchanged
  kKept,  // all of them, but only now; the function has changed
  kLost,  // after a loop, one collective is the same instruction for several of its iterations
};

inline constexpr const char* kLostCollective = "an exchange behind a loop that is of several iterations";

/// Does what LoopEnds::kKept does for collectives and iteration marks that have left a loop whose counter they have: a
/// later condition, which seemed to lead to the next iteration, has become constant.
LoopMembership keep_collectives_in_loops(llvm::Function& function);

}  // namespace kiln
