// Values of program-scope constants.
//
// Clang computes most of them itself. Where it cannot, because its constant evaluator does not know components of
// vectors, it writes a function that computes them before the program starts. A kernel has no such moment; Metal has
// constant initialisers only. So these functions are evaluated here, in the IR.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

/// Gives program-scope constants their values and removes the functions that would have computed them, as far as they
/// can be evaluated. After inlining.
void evaluate_constant_initializers(llvm::Module& module);

}  // namespace kiln
