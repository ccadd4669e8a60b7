// Replaces phis that remember a branch's outcome by the branch's condition.
//
// Problem: StructurizeCFG puts the two sides of a divergent branch one after the other. A phi says whether a thread
// still has to take the second side: true on the edge past the first side, and false after it. In vector code the phi
// is a mask in registers: created at the end of the first side, merged at the phi, and narrowed by the simdgroup's mask
// again. Without mask registers it takes four of 16 registers.
//
// Idea: such a phi is equal to the first branch's condition or to its complement. The condition dominates the phi, and
// narrows the masks of the second side. Where the phi's block is outside of the condition's loop, the phi stays: lanes
// that leave the loop in different iterations have different values of a uniform condition.
//
// Rejected: InstCombine, which also widens the integers that `narrow-integers` has narrowed.
//
// Complexity: linear in the phis of bits.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

namespace kiln {

/// `function` has been structured. Returns whether it has changed.
bool replace_flow_phis(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace kiln
