// Memory that takes what a guard does not let through (lowering/bounds_guards.h).
//
// It is a variable of the thread's that nobody reads. While code of one thread is optimised it is a global one, since
// SROA makes branches of stores that may go to a local one.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

namespace kiln {

void hide_sinks(llvm::Function& function);

/// One more, for accesses of up to so many bytes, as `hide_sinks` leaves them.
llvm::GlobalVariable& make_sink(llvm::Module& module, unsigned bytes);

/// Where they are still wanted.
void restore_sinks(llvm::Function& function);

/// Where they are still wanted, one for all threads. Nobody reads what they write.
void share_sinks(llvm::Module& module);

bool is_sink(const llvm::Value* pointer);

}  // namespace kiln
