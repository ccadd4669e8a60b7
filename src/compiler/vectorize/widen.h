// Widens the code of one thread to a simdgroup: a divergent value becomes a vector of 32 elements, a uniform value
// stays scalar, and divergent branches become masks.
//
// The control flow is structured first (`kStructuring`, analysis/structured_flow.h), so that two rules suffice:
//
//   a divergent branch has one side, which joins at its other successor: the side runs under a narrower mask, if any
//   lane takes it, and phis at the join become selects;
//
//   a loop with a divergent exit has one exit, at its latch: a mask has the lanes that are still in the loop, and a
//   lane's loop-carried and live-out values stay as they were when the lane left.
//
// A masked-off lane computes with whatever values it has, never with poison: arithmetic is harmless, loads return zero,
// stores and atomics skip the lane.
//
// Rejected: LLVM's loop vectorizer (innermost loops only, no useful support for divergent control flow), and masks on
// every block without structuring (as many masks as blocks, and joins that need sets of them).
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include <string>

#include "compiler/ir/convergence_point.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/ir/vector_isa.h"

namespace kiln {

struct WidenOptions {
  VectorIsa vector_isa;
  // Whether all 32 lanes are active at entry, so that masks come from the body's conditions only.
  bool is_full = false;
  // The convergence points that `__kiln_wait` calls refer to. Collectives become operations on lanes. Barriers stay:
  // operand 1 becomes the mask of the active lanes, and operand 2 becomes 0.
  llvm::ArrayRef<ConvergencePoint> sites;
  // Byte offset in the launch, the function's first parameter, of the flag that the launch is exclusive
  // (CpuLaunch::is_alone): its atomics need not be atomic then.
  uint64_t alone_offset = 0;
  // Whether an argument of such a launch is one of its outputs.
  llvm::function_ref<bool(uint64_t argument)> is_output;
};

/// How remarks on what widening, or a pass before it, does not take begin.
inline constexpr const char* kSimdRefusal = "the SIMD engine does not take the kernel: ";

/// Replaces the body of `function(…, i32 lanes)`, whose control flow is structured, by code for a simdgroup of `lanes`
/// threads, at most 32; kLaneFunction gives a thread's lane. On failure returns the reason and leaves a declaration;
/// otherwise returns an empty string.
std::string widen(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, const WidenOptions& options);

}  // namespace kiln
