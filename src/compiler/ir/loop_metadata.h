// Unrolling metadata of loops that Kiln's passes create.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Metadata.h>

namespace kiln {

inline void set_unrolling(llvm::BranchInst& back, llvm::ArrayRef<llvm::Metadata*> how) {
  llvm::LLVMContext& context = back.getContext();
  llvm::MDNode* loop = llvm::MDNode::getDistinct(context, {nullptr, llvm::MDNode::get(context, how)});
  loop->replaceOperandWith(0, loop);
  back.setMetadata(llvm::LLVMContext::MD_loop, loop);
}

/// `back` is the branch of the loop's latch.
inline void never_unroll(llvm::BranchInst& back) {
  set_unrolling(back, llvm::MDString::get(back.getContext(), "llvm.loop.unroll.disable"));
}

inline void always_unroll(llvm::BranchInst& back) {
  set_unrolling(back, llvm::MDString::get(back.getContext(), "llvm.loop.unroll.full"));
}

/// Forbids unrolling in code that rarely runs.
inline void disable_unrolling(llvm::Function& function) {
  for (llvm::BasicBlock& block : function)
    if (auto* back = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator()))
      if (back->hasMetadata(llvm::LLVMContext::MD_loop)) never_unroll(*back);
}

}  // namespace kiln
