// Guarded atomic additions to floats: the guard selects the address, as for stores, instead of the path.
//
// A guard on an atomic is a branch (bounds_guards.h). For 32 lanes that add to consecutive elements, it would be a mask
// of the lanes that it allows, which is computed and tested before the access. If the guard selects between the address
// and a sink, as a store's does, one check covers the whole range, and the function that does striped updates counts
// its lanes (striped_atomics.h), so that there is less to compile.
//
// Only for updates whose old value is unused, and only after the passes on one thread's code: a branch is better for
// other engines and targets.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

class Divergence;

/// Whether there were any. Guards with uniform conditions stay branches.
bool select_guarded_addresses(llvm::Function& function, const Divergence& divergence);

}  // namespace kiln
