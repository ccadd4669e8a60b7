// The code of one thread as code of a simdgroup: every value that differs between threads becomes a vector of 32, every
// other one stays as it is, and branches that threads take differently become masks.
//
// The control flow is structured before (`structure_control_flow`), so that two rules suffice:
//
//   a branch that threads take differently has one side, which joins at its other successor: the side runs under a
//   narrower mask, where any lane wants it, and values are chosen at the join;
//
//   a loop that threads leave differently has one exit, at its latch: a mask of the lanes that are still in it; what a
//   lane has, loop-carried or wanted outside, stays as it was when the lane left.
//
// A lane that is masked off computes with whatever it has, never with poison: arithmetic is harmless, loads give it
// zero, stores and atomics pass it over.
//
// Rejected: LLVM's loop vectoriser (innermost loops only, no divergent control flow worth having), and masks on every
// block without structuring (as many masks as blocks, and joins that need sets of them).
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include <string>

#include "compiler/ir/convergence_point.h"
#include "compiler/ir/simdgroup.h"

namespace kiln {

struct WidenOptions {
  // Masks in registers of their own: masked loads and stores of elements of every size, gathers, permutations.
  bool has_avx512 = false;
  // Whether there are always 32 lanes, so that masks are those of the body's conditions.
  bool is_full = false;
  // What `__kiln_wait` stands for. Exchanges become operations on lanes. Barriers stay: their first operand is the mask
  // of the lanes that wait, and the second is 0.
  llvm::ArrayRef<ConvergencePoint> sites;
  // Where a launch, the function's first parameter, says that it is alone (CpuLaunch::is_alone), in bytes: its atomics
  // need not be such then.
  uint64_t alone_offset = 0;
  // Whether an argument of such a launch is one of its outputs.
  llvm::function_ref<bool(uint64_t argument)> is_output;
};

/// Replaces the body of `function(…, i32 lanes)`, whose control flow is structured, by code of as many threads, at most
/// 32, as its last argument says. kLaneFunction gives a thread's lane. Returns why it cannot be done, and the function
/// is a declaration then; or nothing.
std::string widen(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, const WidenOptions& options);

}  // namespace kiln
