// Loops in which a thread waits for what another thread of its threadgroup does.
//
//     while (atomicCAS(lock, 0, 1) != 0);  // …
//     atomicExch(lock, 0);
//
// Since sm_70 CUDA promises that each thread makes progress, so this ends although all threads of a warp do it. A
// simdgroup that runs as one vector never leaves the loop: the lane that has the lock waits for the others at its end.
// Threads that run one after the other end, unless the lock's owner waits at a barrier, or the thread that is waited
// for has a higher number. So a CUDA body with such a loop is the scalar engine's, and the thread yields where the loop
// goes round: it becomes a coroutine, and the others of the threadgroup have a turn (targets/cpu/group_scheduler.h).
//
// A loop waits so where
//
//   one of its exits depends on an atomic's result or on a volatile load, by data or by control flow,
//   from an address that is not another one in each iteration, as that of a probed slot is,
//   in memory that the body also writes elsewhere, where other threads of the threadgroup come, and not only before a
//   barrier that all pass before it: otherwise the loop either ends by itself or waits for another threadgroup,
//
// and no barrier is passed in each iteration. What only retries is none (`is_retried`):
//
//     do { assumed = old; old = atomicCAS(p, assumed, f(assumed)); } while (assumed != old);
//
// Such a loop goes round only where the compare-exchange has failed, and expects next what it has found. So it ends at
// the second attempt where nobody interferes, and where lanes of a vector interfere, one of them has succeeded. A
// lock's expects a constant, or is passed by where the lock is held.
//
// Where it is not plain what a loop waits for, it counts as one: the scalar engine ends in any case.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

inline constexpr const char* kSpinLoop = "a loop waits for other threads of its threadgroup";

/// `body` is that of one thread, inlined, before exchanges and barriers are numbered.
bool has_spin_loops(llvm::Function& body);

/// Calls of kYieldFunction (lowering/convergence_points.h) where such loops go round. Returns whether there are any.
bool add_yields(llvm::Function& body);

}  // namespace kiln
