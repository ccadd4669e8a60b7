// Interrupt polls (safepoints) in loops that are not known to end.
//
// Problem: a body may loop for ever (`while (true) {}`, a spin on an atomic), and nothing outside of it can end the
// thread that runs it.
//
// Idea: at the head of each such loop the code loads a word of the launch (`CpuLaunch::poll_word`), which is 0 as a
// rule. Otherwise it calls the runtime on a cold path, and returns from the function where that says that the launch is
// to end. What it has computed is discarded, so that it may return anywhere; a coroutine notes that it has returned.
//
// A loop is known to end where ScalarEvolution bounds its iterations by less than 2^33: those have no poll. They are
// inserted last, so that no other pass sees them: a load of memory that others change, and a call, in every `while`
// would end hoisting and vectorization.
//
// Rejected: pages that are made unreadable (a handler of SIGSEGV is the program's own); ending threads by a signal
// (they may hold locks); a poll in the front end (loops that unroll or vectorize would have it still).
//
// Complexity: that of ScalarEvolution's bounds of loops.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

/// Whether a body, before an engine takes it, has a loop that is not known to end. The loops that engines make around
/// bodies all end.
bool may_loop_for_ever(llvm::Function& body);

/// For modules whose body may loop for ever. `coroutine`: the name of a function whose record notes that it has
/// returned (CpuThread::site); empty for none. Returns whether any function has a poll.
bool insert_interrupt_polls(llvm::Module& module, llvm::StringRef coroutine);

}  // namespace kiln
