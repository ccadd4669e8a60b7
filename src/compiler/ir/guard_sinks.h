// Sinks: memory for stores whose bounds guard fails (lowering/bounds_guards.h).
//
// A sink is a variable of the thread that is never read. While the code of one thread is optimized, it is a global
// variable, since SROA makes branches of stores that may go to a local one.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

namespace kiln {

void hide_sinks(llvm::Function& function);

/// One more sink, for accesses of up to so many bytes, in the form that `hide_sinks` produces.
llvm::GlobalVariable& make_sink(llvm::Module& module, unsigned bytes);

/// Makes sinks that are still used local variables again, and deletes the others.
void restore_sinks(llvm::Function& function);

/// Makes each sink that is still used one variable for all threads, which never read it.
void share_sinks(llvm::Module& module);

bool is_sink(const llvm::Value* pointer);

/// The address that a guarded access uses if its check passes; any other one is itself.
const llvm::Value* unguarded(const llvm::Value* pointer);

}  // namespace kiln
