// Estimates whether vectors pay: the cycles of a simdgroup's vector code, beside those of its threads one after the
// other. A body that the estimate finds 2.2 times as fast on the scalar engine runs there (`refuse_by_execution_cost`).
//
// The estimate is a walk over one thread's code before control flow is structured. Each instruction has a cost for each
// engine, and each block a frequency for each: how often one thread executes it, and how often a simdgroup does.
//
// Cycles of 32 lanes, measured on a Zen 4 and rounded:
//   arithmetic               0.7 a register; divisions 8 or 14, products of 64 bits 3 more
//   interleaved access       4 or 5 a register, for distances of at most 8 elements from lane to lane
//   part of a row            16 for 4 bytes, which are accessed beside others of the row
//   constant table           1.5 for each of its registers and each register of indices
//   gather, scatter          60, if the processor has them
//   serialized access        130, a loop over lanes; so are atomics
//   cache conflict           450, in a loop in which each lane walks a row of its own, if their distance maps rows to
//                            few sets of the first-level cache: 32 misses, where one thread has one in 16 iterations
//   divergent branch         5, a phi at its join 1 a register
//   uniform or affine value  0.4, since it is computed once
// Cycles of one thread: arithmetic 0.5, division 4, access 0.8, divergent branch 5 (a third of a misprediction),
// uniform value 0.35.
//
// Frequencies: a loop whose trip count is unknown runs 16 times. A divergent branch divides a thread's frequency by its
// edges, or as its weights say, but not a simdgroup's, whose lanes take all of them. A simdgroup runs a loop as often
// as its slowest lane: 1.5 times as often as a thread if a counter ends it, 4 times if a value that is searched for
// does (the largest of 32 geometrically distributed numbers is four times their mean). A side that only returns is
// rare.
//
// The estimate knows no data. Of the 148 pairs of body and instruction set that it was fitted to, measured and
// estimated ratio differ by a factor of 2.7 (standard deviation of the logarithm). So it needs a factor of 2.2 to
// choose the scalar engine; with that no choice was wrong (docs/design/compiler.md). Kernels with convergence points
// stay on the SIMD engine, since the scalar engine suspends each thread there.
//
// Rejected: LLVM's BlockFrequencyInfo, which has one frequency for both engines. LLVM's cost model
// (TargetTransformInfo) for 32 lanes, which knows gathers and shuffles but no loops over lanes and no masks.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include <string>

#include "compiler/analysis/divergence.h"
#include "compiler/ir/vector_isa.h"

namespace kiln {

/// In cycles, for 32 threads that execute the function once.
struct ExecutionCost {
  double threads = 0;  // one after the other

  // As lanes of vectors.
  double arithmetic = 0;      // and accesses of consecutive or interleaved elements
  double indexed = 0;         // accesses that gather, scatter or are serialized
  double private_arrays = 0;  // those of private arrays
  double conflicts = 0;       // misses of the first-level cache
  double branches = 0;        // masks

  double simdgroup() const { return arithmetic + indexed + private_arrays + conflicts + branches; }
};

/// Linear in the size of the function, but for the depth of loops.
ExecutionCost execution_cost(llvm::Function& function, const Divergence& divergence,
                             llvm::FunctionAnalysisManager& analyses, const VectorIsa& vector_isa);

/// Why the scalar engine is faster, or an empty string.
std::string refuse_by_execution_cost(const ExecutionCost& cost);

}  // namespace kiln
