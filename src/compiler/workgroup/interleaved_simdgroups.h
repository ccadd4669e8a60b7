// Interleaved simdgroups: two or four simdgroups take turns in each iteration of an inner loop.
//
// A GPU hides the latency of an addition behind other simdgroups. A processor that runs one simdgroup after the other
// waits for it where the simdgroup has one sum, or a few, that each iteration continues: a tiled matrix product of
// 16 x 16 threads has two registers of sums, which is one addition in two cycles where a processor has two in one.
// Simdgroups do not depend on one another between two barriers, so the loop over simdgroups is unrolled and the copies
// of the inner loop become one (unroll and jam). What the simdgroups load alike, such as the tile's row, is loaded
// once.
//
// LLVM's utility does the work; its pass asks for dependences between iterations, which nobody can tell from addresses,
// but which there are none of here. Rejected: to interleave whatever is between two barriers, also without an inner
// loop. A processor that executes out of order does that by itself, as far as its window reaches.
#pragma once

#include <llvm/IR/PassManager.h>

#include "compiler/ir/vector_isa.h"

namespace kiln {

/// For a threadgroup's function with loops over simdgroups (kSimdgroupLoop) whose trip counts are known. An inner loop
/// is one block that stores nothing and has few registers of sums. Linear in the code. Returns whether a loop changed.
bool interleave_simdgroups(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
                           const VectorIsa& vector_isa);

}  // namespace kiln
