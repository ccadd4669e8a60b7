// Cuts the code of a thread where the thread waits.
//
// A thread that waits returns, and is called again when it goes on. One function does both: at its beginning it jumps
// to where the thread's record says. What the thread needs behind a wait is in its frame, memory of the caller's: all
// arrays, and values, each stored where the thread waits and read again behind. What takes few instructions to compute
// from arguments is computed again instead.
//
// LLVM's coroutines did this first. They make four functions of one (a start, a resumption, a destruction and a
// clean-up) for callers that know less, and took five times as long to compile.
#pragma once

#include <llvm/IR/Function.h>

#include <cstdint>

namespace kiln {

/// `function` is optimised and has the parameters of CpuThreadFunction (core/cpu_image.h); each call of
/// kConvergenceFunction (lowering/convergence_points.h) becomes a place where it returns. Gives the bytes of its frame.
uint64_t split_at_suspend_points(llvm::Function& function);

}  // namespace kiln
