// Arithmetic of small integers in 16 or 8 bits instead of the 32 to which C++ promotes.
//
// Problem: sums of bytes, blends of pixels, differences of quantised numbers: the operands have 8 or 16 bits, the
// language computes in 32, and the result is compared, or stored in 8 again. As vectors, words of 32 bits are two to
// four times as many registers and extensions. LLVM narrows what is truncated in the end, and neither comparisons nor
// divisions, shifts to the right, minima or what becomes a float.
//
// Idea: the ranges of values follow from those of the extended numbers. Of a value that fits into 16 bits, with a sign
// or without, the lower 16 bits are enough; most operations give the lower bits of their result from the lower bits of
// their operands, the others do so for operands that fit. Values that use one another are narrowed together if the
// vector instructions that this saves are more than those that extend or truncate at the borders. If no value of such a
// group needs more than 8 bits, and no operation is one that vectors of bytes lack, it has 8.
//
// Addresses stay as they are: their form from lane to lane is worth more than their width. So do uniform values, which
// are scalars.
//
// A sum over the iterations of a loop has a range, too, if the loop runs a known number of times at most, and what one
// iteration adds has a range: the sum over a window of 11 x 11 pixels fits into 16 bits. Sums of nested loops are one
// sum.
//
// Rejected: the same on vectors, after they are made. Masks and guards stand between operations then. Loops whose
// number of iterations is not known: a sum would be extended every so many iterations.
//
// Complexity: linear in the instructions and their operands, which are visited twice where there are sums of loops; of
// a sum at most some hundred values are followed. A group is found by union of pairs.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include "compiler/analysis/divergence.h"

namespace kiln {

/// Returns whether the function, which is one thread's, has changed.
bool narrow_integers(llvm::Function& function, const Divergence& divergence, llvm::FunctionAnalysisManager& analyses);

}  // namespace kiln
