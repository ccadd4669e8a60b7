// The places where threads wait for one another, and their order in time.
//
// Threads of a simdgroup that wait are released when they wait at the same dynamic instance of a call, the earliest
// first (docs/language.md 2.3). An instance is the call's place in the program and, for each loop around it, the number
// of the iteration. Both are made explicit here, before any optimisation: each call gets a number and the iteration
// counters as operands. Afterwards the optimiser may copy calls, unroll loops and move code as it likes: a copy still
// says which instance it is.
//
// "Around it" is meant as in the source: a call before a `break` belongs to the iteration that it ends, although the
// control flow graph has left the loop there. The front end has put marks before and behind each loop (`loop_enter`,
// `loop_merge`), and a call is inside a loop if the loop's header dominates it and its merge mark does not.
//
// A function that returns out of its loop skips the loop's mark. So marks stand around each call of a function with
// loops too (`mark_calls`): behind a call nothing is inside a loop of the function's.
//
// Places are counted in the order of control flow, and otherwise in that in which Clang lays blocks out, which is the
// source's but where inlining has put a block into the one before it. Exchanges come before a barrier that is on
// another way: those at the barrier wait for the others to return.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <vector>

#include "compiler/ir/convergence_point.h"

namespace kiln {

/// Marks the calls of functions with loops. Before inlining.
void mark_calls(llvm::Module& module);

// How a call before a `break` stays in the iteration that it ends.
enum class LoopEnds {
  kCounted,  // by its counters
  kKept,     // by control flow too: a branch back that is never taken (ordering_edges.h) makes it a part of the loop
};

/// Replaces exchanges and barriers in `function` (inlined, allocas promoted, otherwise as Clang made it) and removes
/// the marks. The result is indexed by site number.
std::vector<ConvergencePoint> number_convergence_points(llvm::Function& function, LoopEnds ends = LoopEnds::kCounted);

// `void __kiln_iteration(i32 counter…)` behind what an exchange has become keeps the counters of its loops, while more
// conditions may become known. Its name is followed by their number.
inline constexpr const char* kIterationFunction = "__kiln_iteration";

/// Marks the iteration of `wait` before it, where it is in a loop.
void mark_iteration(llvm::CallInst& wait);
void remove_iterations(llvm::Function& function);

enum class InLoops {
  kAll,   // as they were
  kKept,  // now, but were not all: the function has changed
  kLost,  // one is, behind a loop, the same instruction for several of its iterations
};

inline constexpr const char* kLostCollective = "an exchange behind a loop that is of several iterations";

/// The same as LoopEnds::kKept for exchanges, and marks of iterations, that are out of a loop whose counter they have:
/// a condition behind them has become known that had seemed to go round.
InLoops keep_collectives_in_loops(llvm::Function& function);

}  // namespace kiln
