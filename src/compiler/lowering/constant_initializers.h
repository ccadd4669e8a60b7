// Evaluates initializers of program-scope constants.
//
// Clang evaluates most of them itself. Its constant evaluator does not support components of vectors; there it emits a
// function that computes them before the program starts. A kernel has no such moment, and Metal has constant
// initialisers only. So these functions are evaluated here, in the IR.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

/// Gives program-scope constants their values and removes the functions that would have computed them, as far as they
/// can be evaluated. Runs after inlining.
void evaluate_constant_initializers(llvm::Module& module);

}  // namespace kiln
