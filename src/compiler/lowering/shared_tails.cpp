#include "compiler/lowering/shared_tails.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/SSAUpdater.h>

#include <optional>
#include <utility>

#include "compiler/ir/block_copies.h"
#include "compiler/ir/convergence_point.h"
#include "compiler/ir/ordering_edges.h"

namespace kiln {

using namespace llvm;

namespace {

// Of `blocks` those from which a way in them leads to one of which `holds` does.
BlockList leading_within(const BlockList& blocks, function_ref<bool(BasicBlock&)> holds) {
  const Blocks all(blocks.begin(), blocks.end());
  Blocks to;
  for (BasicBlock* block : blocks)
    if (holds(*block)) to.insert(block);
  const Blocks leading = blocks_reaching_by_edges(to, [&](const BasicBlock& from, const BasicBlock& next) {
    return all.contains(&from) && is_real_edge(from, next);
  });
  BlockList found;
  for (BasicBlock* block : blocks)
    if (leading.contains(block)) found.insert(block);
  return found;
}

// Of the blocks through which every way to the goal leads, the first behind all that are among `leading`.
BasicBlock& first_behind(const Blocks& leading, BasicBlock& goal) {
  const DominatorTree dominators(*goal.getParent());
  const DomTreeNode* node = dominators.getNode(&goal);
  while (!leading.contains(node->getIDom()->getBlock())) node = node->getIDom();
  return *node->getBlock();
}

// Leads on from the blocks to the goal. In a loop whose iterations are told apart, what leads to them becomes a part of
// it. Returns whether it can.
bool lead_on(const BlockList& blocks, BasicBlock& goal, const Loop* loop) {
  // In the same iteration.
  auto blocks_reaching_in_turn = [&](const Blocks& to) {
    return blocks_reaching_by_edges(
        to, [&](const BasicBlock&, const BasicBlock& next) { return !loop || &next != loop->getHeader(); });
  };
  // What is before already need not be put there.
  const Blocks leads_to_goal = blocks_reaching_in_turn({&goal});
  BlockList first;
  for (BasicBlock* block : blocks)
    if (!leads_to_goal.contains(block)) first.insert(block);
  if (first.empty()) return true;
  const Blocks leads_to_first = blocks_reaching_in_turn(Blocks(first.begin(), first.end()));
  if (leads_to_first.contains(&goal)) return false;
  auto is_kept_out = [&](const BasicBlock* block) { return !loop->contains(block) && any_of(*block, is_convergent); };
  if (loop && any_of(leads_to_first, is_kept_out)) return false;
  add_ordering_edges(first, first_behind(leads_to_first, goal));
  return true;
}

// The innermost loop around both.
const Loop* loop_around(const BasicBlock& a, const BasicBlock& b, const LoopInfo& loops) {
  const Loop* loop = loops.getLoopFor(&a);
  while (loop && !loop->contains(&b)) loop = loop->getParentLoop();
  return loop;
}

// From which the next iteration begins; null where it does from several blocks.
BasicBlock* latch_of(const Loop& loop) {
  BasicBlock* latch = nullptr;
  for (BasicBlock* block : predecessors(loop.getHeader())) {
    if (!loop.contains(block) || !is_real_edge(*block, *loop.getHeader()) || block == latch) continue;
    if (latch) return nullptr;
    latch = block;
  }
  return latch;
}

// What a branch's way leads to, and the waits of the others one after the other.
class TailFirst {
 public:
  TailFirst(BranchInst& branch, unsigned way, size_t& may_be_copied,
            function_ref<bool(BasicBlock& wait, const Instruction&)> matters)
      : fork_(*branch.getParent()),
        start_(*branch.getSuccessor(way)),
        may_be_copied_(may_be_copied),
        matters_(matters) {}

  // Gives those that come from the branch a copy of what others come to behind the wait too, where nobody is met.
  // Before anything is put before a wait: others may come to it behind another one. Returns whether it can.
  bool leave_divergently(BasicBlock& wait) {
    if (!find(wait) || has_waited_ || none_of(first_, [&](BasicBlock* block) { return in_turn_.contains(block); }))
      return true;
    SmallVector<Way> ways;
    BlockList copied;
    for (BasicBlock* block : reachable_from(start_, [&](BasicBlock& block) { return !in_turn_.contains(&block); }))
      for (BasicBlock* next : successors(block)) {
        if (!is_real_edge(*block, *next) || !in_turn_.contains(next) || met_.contains(next)) continue;
        if (!is_contained(ways, Way(block, next))) ways.push_back({block, next});
        for (BasicBlock* one : reachable_from(*next)) copied.insert(one);
      }
    size_t size = 0;
    for (const BasicBlock* block : copied) size += block->size();
    if (size > may_be_copied_) return false;
    may_be_copied_ -= size;
    copy_for(ways, copied);
    loops_.reset();
    return true;
  }

  bool put_before(BasicBlock& wait) {
    if (!find(wait)) return true;
    BasicBlock* goal = &wait;
    if (has_waited_) {
      BasicBlock* latch = loop_ ? latch_of(*loop_) : nullptr;
      if (!latch) return false;
      goal = SplitEdge(latch, loop_->getHeader());
    }
    if (!lead_on(first_, *goal, loop_)) return false;
    loops_.reset();
    return true;
  }

 private:
  // What there is for the wait. Returns whether anything has to come before it.
  bool find(BasicBlock& wait) {
    Blocks mattering;
    for (const BasicBlock* block : reachable_from(start_))
      if (any_of(*block, [&](const Instruction& instruction) { return matters_(wait, instruction); }))
        mattering.insert(block);
    if (mattering.empty()) return false;
    if (!loops_) loops_.emplace(DominatorTree(*fork_.getParent()));
    loop_ = loop_around(fork_, wait, *loops_);
    const BlockList behind = reachable_from(wait);
    in_turn_ = behind;
    if (loop_)
      in_turn_ =
          reachable_from(wait, [&](BasicBlock& block) { return &block != loop_->getHeader() || &block == &wait; });
    has_waited_ = in_turn_.contains(&fork_);
    met_ = leading_within(behind, [&](BasicBlock& block) {
      const bool is_of_turn = loop_ && loop_->contains(&block) && (has_waited_ || !in_turn_.contains(&block));
      return !is_of_turn && any_of(block, is_convergent);
    });
    const BlockList passed = reachable_from(start_, [&](BasicBlock& block) { return !met_.contains(&block); });
    const BlockList leaving = leading_within(passed, [](BasicBlock& block) { return succ_empty(&block); });
    first_ = leading_within(leaving, [&](BasicBlock& block) { return mattering.contains(&block); });
    return !first_.empty();
  }

  BasicBlock& fork_;
  BasicBlock& start_;
  size_t& may_be_copied_;
  function_ref<bool(BasicBlock& wait, const Instruction&)> matters_;
  std::optional<LoopInfo> loops_;  // until something changes
  // Of the wait that was asked for:
  const Loop* loop_ = nullptr;  // around it and the branch
  BlockList in_turn_;           // behind it, in the same iteration
  BlockList met_;               // behind it, and leading to where threads do something together
  BlockList first_;             // what has to come before it
  bool has_waited_ = false;     // those at the branch, in this iteration
};

}  // namespace

bool put_tail_first(BranchInst& branch, unsigned way, const Blocks& waits, size_t& may_be_copied,
                    function_ref<bool(BasicBlock& wait, const Instruction&)> matters) {
  TailFirst tail(branch, way, may_be_copied, matters);
  BlockList ahead;
  for (BasicBlock* block : reachable_from(*branch.getSuccessor(1 - way)))
    if (waits.contains(block)) ahead.insert(block);
  return all_of(ahead, [&](BasicBlock* wait) { return tail.leave_divergently(*wait); }) &&
         all_of(ahead, [&](BasicBlock* wait) { return tail.put_before(*wait); });
}

void define_uses(Function& function) {
  const DominatorTree dominators(function);
  SSAUpdater updater;
  for (Instruction& instruction : instructions(function)) {
    SmallVector<Use*> undefined;
    for (Use& use : instruction.uses())
      if (!dominators.dominates(&instruction, use)) undefined.push_back(&use);
    if (undefined.empty()) continue;
    updater.Initialize(instruction.getType(), instruction.getName());
    updater.AddAvailableValue(instruction.getParent(), &instruction);
    for (Use* use : undefined) updater.RewriteUse(*use);
  }
}

}  // namespace kiln
