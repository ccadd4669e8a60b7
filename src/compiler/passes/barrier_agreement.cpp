#include "compiler/passes/barrier_agreement.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/InstIterator.h>

namespace kiln {

using namespace llvm;

namespace {

using Blocks = SmallPtrSet<const BasicBlock*, 32>;

class Agreement {
 public:
  Agreement(const LoopInfo& loops, Blocks barriers) : loops_(loops), barriers_(std::move(barriers)) {
    SmallVector<const BasicBlock*> waiting(barriers_.begin(), barriers_.end());
    while (!waiting.empty()) {
      const BasicBlock* block = waiting.pop_back_val();
      if (will_wait_.insert(block).second) append_range(waiting, predecessors(block));
    }
  }

  // Whether threads that take different ways behind `fork` meet before their next barrier.
  bool meets(const BasicBlock& fork) const {
    if (count_if(successors(&fork), [&](const BasicBlock* next) { return will_wait_.contains(next); }) < 2) return true;
    return any_of(will_wait_, [&](const BasicBlock* join) { return join != &fork && all_pass(fork, *join); });
  }

 private:
  // Whether whoever comes from `fork` to a barrier comes to `join` first, in the same iteration.
  bool all_pass(const BasicBlock& fork, const BasicBlock& join) const {
    Blocks seen;
    SmallVector<const BasicBlock*> waiting;
    auto go_on = [&](const BasicBlock* from) {
      for (const BasicBlock* next : successors(from)) {
        if (!will_wait_.contains(next)) continue;
        const Loop* loop = loops_.getLoopFor(next);
        bool is_next_iteration = loop && loop->getHeader() == next && loop->contains(from);
        if (is_next_iteration && loop->contains(&fork) && loop->contains(&join)) return false;
        if (next != &join && seen.insert(next).second) waiting.push_back(next);
      }
      return true;
    };
    if (!go_on(&fork)) return false;
    while (!waiting.empty()) {
      const BasicBlock* block = waiting.pop_back_val();
      if (barriers_.contains(block) || !go_on(block)) return false;
    }
    return true;
  }

  const LoopInfo& loops_;
  const Blocks barriers_;
  Blocks will_wait_;  // blocks from which a way leads to a barrier
};

}  // namespace

bool barriers_agree(const Function& function, UniformityInfo& uniformity, const LoopInfo& loops,
                    function_ref<bool(const Instruction&)> is_barrier) {
  Blocks barriers;
  for (const Instruction& instruction : instructions(function))
    if (is_barrier(instruction)) barriers.insert(instruction.getParent());
  if (barriers.empty()) return true;
  Agreement agreement(loops, std::move(barriers));
  return all_of(function, [&](const BasicBlock& block) {
    return !uniformity.hasDivergentTerminator(block) || agreement.meets(block);
  });
}

}  // namespace kiln
