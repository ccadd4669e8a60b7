#include "compiler/passes/barrier_agreement.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/InstIterator.h>

namespace kiln {

using namespace llvm;

namespace {

// Whether a way from `from` leads to a block of `wanted`, before it comes to `end`.
bool reaches(const BasicBlock* from, const SmallPtrSetImpl<const BasicBlock*>& wanted, const BasicBlock* end) {
  SmallPtrSet<const BasicBlock*, 16> seen;
  SmallVector<const BasicBlock*> waiting{from};
  while (!waiting.empty()) {
    const BasicBlock* block = waiting.pop_back_val();
    if (block == end || !seen.insert(block).second) continue;
    if (wanted.contains(block)) return true;
    append_range(waiting, successors(block));
  }
  return false;
}

}  // namespace

bool barriers_agree(const Function& function, UniformityInfo& uniformity, const PostDominatorTree& post_dominators,
                    function_ref<bool(const Instruction&)> is_barrier) {
  SmallPtrSet<const BasicBlock*, 8> barriers;
  for (const Instruction& instruction : instructions(function))
    if (is_barrier(instruction)) barriers.insert(instruction.getParent());
  if (barriers.empty()) return true;
  for (const BasicBlock& block : function) {
    if (!uniformity.hasDivergentTerminator(block)) continue;
    const auto* node = post_dominators.getNode(&block);
    const BasicBlock* join = node && node->getIDom() ? node->getIDom()->getBlock() : nullptr;
    auto comes_first = [&](const BasicBlock* successor) { return reaches(successor, barriers, join); };
    if (none_of(successors(&block), comes_first)) continue;
    auto comes = [&](const BasicBlock* successor) { return reaches(successor, barriers, nullptr); };
    if (count_if(successors(&block), comes) > 1) return false;
  }
  return true;
}

}  // namespace kiln
