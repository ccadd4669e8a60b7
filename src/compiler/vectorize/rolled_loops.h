// Keeps loops rolled in which private arrays stay in memory.
//
// Problem: LLVM unrolls loops of known length so that indices of private arrays become constants and the arrays become
// registers. An array that some access reaches by an index from data (a histogram, a stack, an insertion sort) stays in
// memory however much is unrolled. Then unrolling multiplies code: vector code of 32 lanes, in which each access of the
// array is a gather, takes several times as long to compile, is no faster, and is often beyond the limit of compile
// time, so that the body runs on the scalar engine.
//
// Idea: an array stays if one of its indices does not become a constant when every loop of known length is unrolled.
// Loops with variable accesses of such arrays are marked, unless another array becomes registers by them, or they are
// short.
//
// Rejected: unrolling first, and starting again from a copy if the result is too long: it compiles twice, and what is
// not quite too long stays long.
//
// Complexity: linear in the uses of the arrays, times the depth of loops; a constant number of steps for each index.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

namespace kiln {

/// Returns whether a loop was marked.
bool keep_loops_rolled(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace kiln
