// Spin loops: loops in which a thread waits for an action of another thread of its threadgroup.
//
//     while (atomicCAS(lock, 0, 1) != 0);  // …
//     atomicExch(lock, 0);
//
// From compute capability 7.0 on CUDA promises forward progress of each thread, so this ends even if all threads of a
// warp do it. A simdgroup that runs as one vector never leaves the loop: the lane that has the lock waits for the
// others at the loop's end. Threads that run one after the other do end, unless the owner of the lock waits at a
// barrier, or the awaited thread has a higher number. So a CUDA body with a spin loop runs on the scalar engine, and
// the thread yields at the back edge: it becomes a coroutine, and the other threads of the threadgroup run
// (targets/cpu/group_scheduler.h).
//
// A loop is a spin loop if
//
//   one of its exits depends on an atomic's result or on a volatile load, by data or by control flow,
//   from an address that does not change in each iteration, as the address of a probed slot does,
//   in memory that the body also writes elsewhere, where other threads of the threadgroup arrive, and not only before a
//   barrier that all pass before the loop: otherwise the loop ends by itself or waits for another threadgroup,
//
// and no barrier is passed in each iteration. A retry loop is not one (`is_retried`):
//
//     do { assumed = old; old = atomicCAS(p, assumed, f(assumed)); } while (assumed != old);
//
// Such a loop iterates only if the compare-exchange has failed, and then expects the value that it has found. Without
// interference it ends at the second attempt. If lanes of a vector interfere, one of them has succeeded. The
// compare-exchange of a lock expects a constant, or is skipped while the lock is held.
//
// If the analysis cannot tell what a loop waits for, the loop counts as a spin loop: the scalar engine ends in any
// case.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

inline constexpr const char* kSpinLoop = "a loop waits for other threads of its threadgroup";

/// `body` is that of one thread, inlined, before convergence points are numbered.
bool has_spin_loops(llvm::Function& body);

/// Adds calls of kYieldFunction (ir/convergence_point.h) at the back edges of such loops. Returns whether it added any.
bool add_yields(llvm::Function& body);

}  // namespace kiln
