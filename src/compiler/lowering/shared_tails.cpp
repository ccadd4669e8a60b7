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

// The blocks from which a path within `blocks` leads to a block for which `holds` is true.
BlockList reaching_within(const BlockList& blocks, function_ref<bool(BasicBlock&)> holds) {
  const Blocks all(blocks.begin(), blocks.end());
  Blocks to;
  for (BasicBlock* block : blocks)
    if (holds(*block)) to.insert(block);
  const Blocks reaching = blocks_reaching_by_edges(to, [&](const BasicBlock& from, const BasicBlock& next) {
    return all.contains(&from) && is_real_edge(from, next);
  });
  BlockList found;
  for (BasicBlock* block : blocks)
    if (reaching.contains(block)) found.insert(block);
  return found;
}

// The first block after all of `reaching` through which every path to the goal leads.
BasicBlock& first_block_after(const Blocks& reaching, BasicBlock& goal) {
  const DominatorTree dominators(*goal.getParent());
  const DomTreeNode* node = dominators.getNode(&goal);
  while (!reaching.contains(node->getIDom()->getBlock())) node = node->getIDom();
  return *node->getBlock();
}

// Adds ordering edges from the blocks to the goal. In a loop whose iterations are ordered, the blocks that lead to them
// become a part of it. Returns whether that is possible.
bool order_before(const BlockList& blocks, BasicBlock& goal, const Loop* loop) {
  // Without edges to the next iteration.
  auto blocks_reaching_in_iteration = [&](const Blocks& to) {
    return blocks_reaching_by_edges(
        to, [&](const BasicBlock&, const BasicBlock& next) { return !loop || &next != loop->getHeader(); });
  };
  // Blocks that lead to the goal already need no edge.
  const Blocks leads_to_goal = blocks_reaching_in_iteration({&goal});
  BlockList unordered;
  for (BasicBlock* block : blocks)
    if (!leads_to_goal.contains(block)) unordered.insert(block);
  if (unordered.empty()) return true;
  const Blocks leads_to_unordered = blocks_reaching_in_iteration(Blocks(unordered.begin(), unordered.end()));
  if (leads_to_unordered.contains(&goal)) return false;
  auto is_kept_out = [&](const BasicBlock* block) { return !loop->contains(block) && any_of(*block, is_convergent); };
  if (loop && any_of(leads_to_unordered, is_kept_out)) return false;
  add_ordering_edges(unordered, first_block_after(leads_to_unordered, goal));
  return true;
}

// The innermost loop around both.
const Loop* loop_around(const BasicBlock& a, const BasicBlock& b, const LoopInfo& loops) {
  const Loop* loop = loops.getLoopFor(&a);
  while (loop && !loop->contains(&b)) loop = loop->getParentLoop();
  return loop;
}

// The block from which the next iteration begins; null if there are several.
BasicBlock* latch_of(const Loop& loop) {
  BasicBlock* latch = nullptr;
  for (BasicBlock* block : predecessors(loop.getHeader())) {
    if (!loop.contains(block) || !is_real_edge(*block, *loop.getHeader()) || block == latch) continue;
    if (latch) return nullptr;
    latch = block;
  }
  return latch;
}

// The tail that one successor of a branch leads to, ordered before each barrier of the other threads.
class TailOrdering {
 public:
  TailOrdering(BranchInst& branch, unsigned successor, size_t& copy_budget,
               function_ref<bool(BasicBlock& barrier, const Instruction&)> matters)
      : branch_block_(*branch.getParent()),
        start_(*branch.getSuccessor(successor)),
        copy_budget_(copy_budget),
        matters_(matters) {}

  // Gives the threads that take the branch a copy of blocks that others reach after the barrier too, unless these lead
  // to a convergent operation. Must precede any ordering: others may reach a barrier after another one. Returns whether
  // it is possible.
  bool duplicate_tail(BasicBlock& barrier) {
    if (!find(barrier) || has_passed_ ||
        none_of(first_, [&](BasicBlock* block) { return in_iteration_.contains(block); }))
      return true;
    SmallVector<Way> edges;
    BlockList copied;
    for (BasicBlock* block : reachable_from(start_, [&](BasicBlock& block) { return !in_iteration_.contains(&block); }))
      for (BasicBlock* next : successors(block)) {
        if (!is_real_edge(*block, *next) || !in_iteration_.contains(next) || convergent_.contains(next)) continue;
        if (!is_contained(edges, Way(block, next))) edges.push_back({block, next});
        for (BasicBlock* one : reachable_from(*next)) copied.insert(one);
      }
    size_t size = 0;
    for (const BasicBlock* block : copied) size += block->size();
    if (size > copy_budget_) return false;
    copy_budget_ -= size;
    copy_for(edges, copied);
    loops_.reset();
    return true;
  }

  bool put_before(BasicBlock& barrier) {
    if (!find(barrier)) return true;
    BasicBlock* goal = &barrier;
    if (has_passed_) {
      BasicBlock* latch = loop_ ? latch_of(*loop_) : nullptr;
      if (!latch) return false;
      goal = SplitEdge(latch, loop_->getHeader());
    }
    if (!order_before(first_, *goal, loop_)) return false;
    loops_.reset();
    return true;
  }

 private:
  // Finds the blocks that concern the barrier. Returns whether any has to come before it.
  bool find(BasicBlock& barrier) {
    Blocks mattering;
    for (const BasicBlock* block : reachable_from(start_))
      if (any_of(*block, [&](const Instruction& instruction) { return matters_(barrier, instruction); }))
        mattering.insert(block);
    if (mattering.empty()) return false;
    if (!loops_) loops_.emplace(DominatorTree(*branch_block_.getParent()));
    loop_ = loop_around(branch_block_, barrier, *loops_);
    const BlockList after_barrier = reachable_from(barrier);
    in_iteration_ = after_barrier;
    if (loop_)
      in_iteration_ = reachable_from(
          barrier, [&](BasicBlock& block) { return &block != loop_->getHeader() || &block == &barrier; });
    has_passed_ = in_iteration_.contains(&branch_block_);
    convergent_ = reaching_within(after_barrier, [&](BasicBlock& block) {
      const bool is_ordered = loop_ && loop_->contains(&block) && (has_passed_ || !in_iteration_.contains(&block));
      return !is_ordered && any_of(block, is_convergent);
    });
    const BlockList passed = reachable_from(start_, [&](BasicBlock& block) { return !convergent_.contains(&block); });
    const BlockList leaving = reaching_within(passed, [](BasicBlock& block) { return succ_empty(&block); });
    first_ = reaching_within(leaving, [&](BasicBlock& block) { return mattering.contains(&block); });
    return !first_.empty();
  }

  BasicBlock& branch_block_;
  BasicBlock& start_;
  size_t& copy_budget_;
  function_ref<bool(BasicBlock& barrier, const Instruction&)> matters_;
  std::optional<LoopInfo> loops_;  // until the function changes
  // State for one barrier:
  const Loop* loop_ = nullptr;  // the innermost loop around it and the branch
  BlockList in_iteration_;      // blocks after it, in the same iteration
  BlockList convergent_;        // blocks after it that lead to convergent operations
  BlockList first_;             // blocks that have to come before it
  bool has_passed_ = false;     // the threads at the branch have passed it in this iteration
};

}  // namespace

bool order_tail_before_barriers(BranchInst& branch, unsigned successor, const Blocks& barriers, size_t& copy_budget,
                                function_ref<bool(BasicBlock& barrier, const Instruction&)> matters) {
  TailOrdering tail(branch, successor, copy_budget, matters);
  BlockList barriers_ahead;
  for (BasicBlock* block : reachable_from(*branch.getSuccessor(1 - successor)))
    if (barriers.contains(block)) barriers_ahead.insert(block);
  return all_of(barriers_ahead, [&](BasicBlock* barrier) { return tail.duplicate_tail(*barrier); }) &&
         all_of(barriers_ahead, [&](BasicBlock* barrier) { return tail.put_before(*barrier); });
}

void repair_ssa(Function& function) {
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
