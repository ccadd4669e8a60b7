// Unrolling metadata of loops that Kiln's passes create.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Metadata.h>

namespace kiln {

/// Each option is a node of its name and values.
inline void set_loop_options(llvm::BranchInst& back, llvm::ArrayRef<llvm::Metadata*> options) {
  llvm::SmallVector<llvm::Metadata*, 3> operands{nullptr};
  operands.append(options.begin(), options.end());
  llvm::MDNode* loop = llvm::MDNode::getDistinct(back.getContext(), operands);
  loop->replaceOperandWith(0, loop);
  back.setMetadata(llvm::LLVMContext::MD_loop, loop);
}

inline void set_unrolling(llvm::BranchInst& back, llvm::ArrayRef<llvm::Metadata*> how) {
  set_loop_options(back, llvm::MDNode::get(back.getContext(), how));
}

/// `back` is the branch of the loop's latch.
inline void never_unroll(llvm::BranchInst& back) {
  set_unrolling(back, llvm::MDString::get(back.getContext(), "llvm.loop.unroll.disable"));
}

/// The same for a loop that may be unrolled in part, by passes that ask for it.
inline void keep_rolled(llvm::BranchInst& back) {
  llvm::LLVMContext& context = back.getContext();
  auto option = [&](const char* name) { return llvm::MDNode::get(context, llvm::MDString::get(context, name)); };
  set_loop_options(back, {option("llvm.loop.unroll.disable"), option("kiln.loop.rolled")});
}

inline bool is_kept_rolled(const llvm::Loop& loop) {
  return loop.getLoopID() && llvm::findOptionMDForLoopID(loop.getLoopID(), "kiln.loop.rolled");
}

inline void always_unroll(llvm::BranchInst& back) {
  set_unrolling(back, llvm::MDString::get(back.getContext(), "llvm.loop.unroll.full"));
}

/// Unrolls a loop of exactly so many iterations. Where the loop's latch is that of a loop around it too, LLVM takes the
/// metadata for the outer loop's as well, which has another number of iterations and stays.
inline void always_unroll(llvm::BranchInst& back, unsigned iterations) {
  llvm::LLVMContext& context = back.getContext();
  auto* count = llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), iterations));
  set_unrolling(back, {llvm::MDString::get(context, "llvm.loop.unroll.count"), count});
}

/// Whether one of these is the loop's own, and not that of a loop in it with the same latch.
inline bool is_always_unrolled(const llvm::Loop& loop) {
  const llvm::MDNode* own = loop.getLoopID();
  auto has_same = [&](const llvm::Loop* inner) { return inner->getLoopID() == own; };
  return own && llvm::none_of(loop.getSubLoops(), has_same) &&
         (llvm::findOptionMDForLoopID(loop.getLoopID(), "llvm.loop.unroll.full") ||
          llvm::findOptionMDForLoopID(loop.getLoopID(), "llvm.loop.unroll.count"));
}

/// Forbids unrolling in code that rarely runs.
inline void disable_unrolling(llvm::Function& function) {
  for (llvm::BasicBlock& block : function)
    if (auto* back = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator()))
      if (back->hasMetadata(llvm::LLVMContext::MD_loop)) never_unroll(*back);
}

}  // namespace kiln
