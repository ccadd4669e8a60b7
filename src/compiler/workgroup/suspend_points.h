// Suspend points: splits a thread's function where the thread waits.
//
// A thread that waits returns, and is called again to resume. One function does both: at its start it jumps to the
// position in the thread's record. Values live across a suspend point are in the thread's frame, memory of the caller:
// all arrays, and values that are stored at the suspend point and reloaded after it. Values that take few instructions
// to compute from arguments are rematerialized instead.
//
// LLVM's coroutines did this first. They split a function into four (ramp, resume, destroy and cleanup) for callers
// that know less, and took five times as long to compile.
#pragma once

#include <llvm/IR/Function.h>

#include <cstdint>

namespace kiln {

/// `function` is optimised and has the parameters of CpuThreadFunction (core/cpu_functions.h). Each call of
/// kConvergenceFunction (lowering/convergence_points.h) becomes a suspend point. Returns the frame's size in bytes.
uint64_t split_at_suspend_points(llvm::Function& function);

}  // namespace kiln
