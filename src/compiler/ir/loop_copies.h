// A second copy of a loop, and the branch that decides which one runs.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>

namespace kiln {

struct LoopCopy {
  llvm::Loop& loop;
  llvm::BranchInst& branch;  // to the original if the condition holds, else to the copy
};

/// Of a loop in simplified and LCSSA form; the condition is known before it. Keeps the analyses. `suffix` is added to
/// the names of the copy's blocks.
LoopCopy copy_loop(llvm::Loop& loop, llvm::Value* condition, const char* suffix, llvm::LoopInfo& loops,
                   llvm::DominatorTree& dominators);

}  // namespace kiln
