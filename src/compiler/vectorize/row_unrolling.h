// Unrolls loops in which each thread walks a row of its own.
//
// Problem: a thread a row is how sums of rows, distances, scans and filters are first written. In a loop over
// `x[columns * i + k]` a simdgroup's lanes are a row apart, so that each load is a gather, or a loop over lanes, which
// takes a whole line of the cache for each lane and uses one element of it.
//
// Idea: the next iterations load what is beside. The loop is unrolled so that they are in one block; the widener loads
// 16 bytes of each row then and transposes registers (vectorize/widener_interleaved.h).
//
// The same holds where lanes are two, three or four elements apart, as in filters that keep every n-th sample: what
// lies between two lanes' elements is what the next iterations load. One iteration loads all registers and takes a part
// of each; unrolled, they are loaded once and shared.
//
// Only innermost loops that all lanes leave together, of which each copy is short: what does not walk a row is
// there several times. Iterations that are left over are a loop of their own, unless the trip count is known.
//
// Rejected: loading ahead in the widener without unrolling. What one iteration loads for the next ones would have to be
// kept in phis, and chosen from by the counter.
//
// Complexity: linear in the function's instructions; a loop grows by four or eight.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include "compiler/analysis/divergence.h"

namespace kiln {

/// Returns whether a loop was marked. LLVM's `loop-unroll` unrolls them.
bool mark_loops_over_rows(llvm::Function& function, const Divergence& divergence,
                          llvm::FunctionAnalysisManager& analyses);

}  // namespace kiln
