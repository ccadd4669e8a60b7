// Makes blocks of 16 iterations of loops in which each thread walks a row of its own and writes.
//
// Problem: filters, recurrences and scans along rows are a thread a row, `for (i…) y[n * t + i] = f(state, x[n * t +
// i])`. A simdgroup's lanes are a row apart, so that each access is a gather or a scatter, or a loop over lanes. Each
// takes a line of the cache for each lane, and rows at a distance of a power of two evict one another before the next
// element is used. The scalar engine was faster, although lanes do the same arithmetic.
//
// Idea: a tile for each access, 16 elements of the thread, lies on the stack. What 16 iterations load is loaded before
// them, by as many loads in one block, which the widener makes 64 bytes of each row and a transposition of registers
// (vectorize/widener_interleaved.h). The iterations read and write the tiles, which `interleaved-variables` orders by
// lanes: an element of all lanes is consecutive. Afterwards the tiles of stores are written to the rows in the same
// way.
//
// The loop becomes one of at most 16 iterations in another one. Before a block a vote asks whether it has 16, and all
// lanes' accesses are in bounds: those between the first and the last are if these are, and no narrow index wraps. So
// the accesses in one block have no guards. Otherwise, in a last block or at an array's end,
// elements are copied to tiles and from them one by one in a short loop. The iteration itself is there once, however
// long it is, and lanes may have rows anywhere: their distance need not be known.
//
// Loads move before the stores of a block's earlier iterations, and stores behind the loads of later ones. So accesses
// move only if others of the loop are of another argument, or of one that is never written, or are at a constant
// distance at which they never meet, or meet in the order that stays: a load first, and its place is stored to in the
// same iteration or later. Only accesses of each iteration move, so that nothing is accessed that was not. Lanes'
// rows do not overlap within a block.
//
// Long iterations stay as they are if the processor gathers and scatters such elements and rows do not evict one
// another: out of order, these overlap with what the iterations compute one after the other, and transpositions do not.
//
// Rejected: unrolling, which loops without stores get (vectorize/row_unrolling.h): 16 copies of the iteration, and a
// remainder. The same in the widener: slices of addresses, and what may alias, would be looked for in code with masks.
//
// Complexity: linear in the function's instructions, but for pairs of one of at most 8 accesses with others of a loop.
// A loop grows by some hundred instructions.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include "compiler/analysis/divergence.h"
#include "compiler/ir/vector_isa.h"

namespace kiln {

/// Returns whether there is a block.
bool make_row_blocks(llvm::Function& function, const Divergence& divergence, llvm::FunctionAnalysisManager& analyses,
                     const VectorIsa& vector_isa);

}  // namespace kiln
