// The functions that the scalar engine puts around the code of a thread.
//
// Where no thread waits for another, a threadgroup is a loop over its threads. Otherwise each thread is a coroutine,
// cut wherever it waits (workgroup/suspend_points.h); the target's scheduler (targets/cpu/group_scheduler.cpp) calls it
// until it has returned. It is slow and simple: it follows the specification's words on reconvergence literally, and
// other engines are held against it.
//
// Coroutines, not threads with stacks of their own: a waiting thread costs its live values and an indirect call, and
// sanitizers understand them. Their frames are memory of the scheduler's, 64-byte aligned, so that vectors of any width
// may live in them.
#pragma once

#include <llvm/IR/Function.h>

#include "core/kernel_unit.h"

namespace kiln {

inline constexpr const char* kThreadFunction = "__kiln_thread";
inline constexpr const char* kScalarRowFunction = "__kiln_row";

/// Instructions before optimization from which a body is long.
inline constexpr unsigned kLongBody = 4000;

/// Makes a long body a function that is not inlined, and returns it. Inlined into the loop over threads, each of its
/// constants would be hoisted and live in all of its blocks: liveness, and so register allocation, would take the
/// square of its length. The function takes the launch before its arguments, as everything does that runs threads
/// (lowering/interrupt_polls.h).
llvm::Function& keep_out_of_loop(llvm::Function& body);

/// A CpuRowFunction: a loop over threads. Arguments are read before it, so that values computed from them can leave it.
/// Everything outside of a row belongs to the target, and is compiled once and not with each kernel.
llvm::Function& add_scalar_row(llvm::Function& body, const KernelUnit& unit, bool takes_launch);

/// A function that runs a simdgroup of a row (workgroup/thread_coarsening.h), one thread after the other.
llvm::Function& add_scalar_simdgroup(llvm::Function& body, const KernelUnit& unit);

}  // namespace kiln
