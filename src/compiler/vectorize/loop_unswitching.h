// Loop unswitching: a loop whose bounds a uniform condition chooses exists twice.
//
//   int start = row == column ? thread + 1 : 0;      if (row == column)
//   for (int i = start; i < n; ++i) …        ->        for (int i = thread + 1; i < n; ++i) …
//                                                    else
//                                                      for (int i = 0; i < n; ++i) …
//
// Problem: blocks of a triangle, causal attention and the like have a bound that differs between lanes in a few
// threadgroups and is the same for all lanes in the others. The select of both differs between lanes, so all loops have
// masks, and what they index is gathered.
//
// Idea: the condition does not differ. Before the loop it decides which copy runs, and in one of them the bound is
// uniform.
//
// Rejected: LLVM's SimpleLoopUnswitch, which looks for branches inside of loops. A test at run time whether all lanes
// have the same index: in each iteration, and the loop would keep its masks.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include "compiler/analysis/divergence.h"

namespace kiln {

/// Loops without convergent calls, of at most 200 instructions, and at most four of a function. Linear in the code.
/// Returns whether there was one.
bool unswitch_loops(llvm::Function& function, const Divergence& divergence, llvm::FunctionAnalysisManager& analyses);

}  // namespace kiln
