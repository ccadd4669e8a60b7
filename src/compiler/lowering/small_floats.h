// Expands bfloat arithmetic to float arithmetic, rounded to bfloat after each operation.
//
// Processors either lack such instructions or round differently (some conversions flush subnormals), and LLVM
// would call a function for each conversion. Expanded in the IR, before any optimisation, the result is the same on
// every target.
//
// LLVM's code generator would call that function even where a bfloat is only selected or its sign is flipped, and it
// recognizes a flipped sign in the integer operations that implement it. So at the end, before code generation, no
// value is a bfloat: the remaining operations, which only move bits, move integers.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

/// Expands arithmetic. Runs before any optimisation.
void expand_bfloat(llvm::Module& module);

/// Replaces bfloats by integers of the same bits. Runs after all optimisation.
void remove_bfloat(llvm::Module& module);

/// The same in one function, whose arithmetic is expanded already.
void remove_bfloat(llvm::Function& function);

/// Turns a select of the larger or smaller of two halves into a select of their bits. Runs after all optimisation, for
/// CPUs: LLVM's code generator makes a maximum of the former, and a call of `fmaxf` of that.
void select_halves_as_integers(llvm::Module& module);

/// Compares, rounds and takes square roots of vectors of halves, and chooses the smaller or larger of them, as floats:
/// where the processor has no arithmetic of halves, LLVM's code generator would do so lane by lane, with the same
/// results. Conversions to integers of fewer than 32 bits go through those. Runs after all optimisation, which would
/// undo it, for CPUs.
void compute_halves_as_floats(llvm::Module& module);

}  // namespace kiln
