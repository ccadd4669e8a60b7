// Interrupt polls (safepoints) in loops that are not known to end.
//
// Problem: a body may loop for ever (`while (true) {}`, a spin on an atomic), and nothing outside of it can end the
// thread that runs it.
//
// Idea: at the header of each such loop the code loads a word of the launch (`CpuLaunch::poll_word`), which is normally
// 0. Otherwise it calls the runtime on a cold path, and returns from the function if the runtime requests the end of
// the launch. All results are then discarded, so the function may return anywhere; a coroutine records that it has
// returned.
//
// A loop is known to end if ScalarEvolution bounds its iterations by at most 2^32: such loops have no poll. Polls are
// inserted last, after all other passes: a load of memory that others change, and a call, in every `while` would
// prevent hoisting and vectorization.
//
// Rejected: pages that are made unreadable (a handler of SIGSEGV belongs to the program); ending threads by a signal
// (they may hold locks); a poll in the front end (loops that unroll or vectorize would still have it).
//
// Complexity: that of ScalarEvolution's bounds of loops.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

/// Whether a body, before an engine transforms it, has a loop that is not known to end. The loops that engines add
/// around bodies all end.
bool may_not_terminate(llvm::Function& body);

/// For modules whose body may loop for ever. `coroutine`: the name of a function whose record stores that it has
/// returned (CpuThread::site); empty for none. Returns whether any function has a poll.
bool insert_interrupt_polls(llvm::Module& module, llvm::StringRef coroutine);

}  // namespace kiln
