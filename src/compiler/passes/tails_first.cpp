#include "compiler/passes/tails_first.h"

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

#include "compiler/passes/block_copies.h"
#include "compiler/passes/lane_exchanges.h"
#include "compiler/passes/untaken_ways.h"

namespace kiln {

using namespace llvm;

namespace {

// Of `blocks` those from which a way in them leads to one of which `holds` does.
BlockList leading_within(const BlockList& blocks, function_ref<bool(BasicBlock&)> holds) {
  const Blocks all(blocks.begin(), blocks.end());
  Blocks to;
  for (BasicBlock* block : blocks)
    if (holds(*block)) to.insert(block);
  const Blocks leading = leading_by_ways(
      to, [&](const BasicBlock& from, const BasicBlock& next) { return all.contains(&from) && is_taken(from, next); });
  BlockList found;
  for (BasicBlock* block : blocks)
    if (leading.contains(block)) found.insert(block);
  return found;
}

// Puts the blocks before the goal. In a loop whose iterations are told apart, what leads to them becomes a part of it.
// Returns whether it can.
bool put_before(BasicBlock& goal, const BlockList& blocks, const Loop* loop) {
  // In the same iteration.
  auto leading_in_turn = [&](const Blocks& to) {
    return leading_by_ways(
        to, [&](const BasicBlock&, const BasicBlock& next) { return !loop || &next != loop->getHeader(); });
  };
  // What is before already need not be put there.
  const Blocks leads_to_goal = leading_in_turn({&goal});
  BlockList first;
  for (BasicBlock* block : blocks)
    if (!leads_to_goal.contains(block)) first.insert(block);
  if (first.empty()) return true;
  const Blocks leads_to_first = leading_in_turn(Blocks(first.begin(), first.end()));
  if (leads_to_first.contains(&goal)) return false;
  auto is_kept_out = [&](const BasicBlock* block) {
    return !loop->contains(block) && any_of(*block, is_done_together);
  };
  if (loop && any_of(leads_to_first, is_kept_out)) return false;
  const DominatorTree dominators(*goal.getParent());
  BasicBlock* goes_on = &goal;
  for (const DomTreeNode* node = dominators.getNode(&goal); !leads_to_first.contains(node->getBlock());
       node = node->getIDom())
    goes_on = node->getBlock();
  add_untaken_ways(first, *goes_on);
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
    if (!loop.contains(block) || !is_taken(*block, *loop.getHeader()) || block == latch) continue;
    if (latch) return nullptr;
    latch = block;
  }
  return latch;
}

// Gives those that come from `start` a copy of what others come to behind a wait too, where nobody is met. Returns
// whether it can.
bool leave_apart(BasicBlock& start, const BlockList& behind, const BlockList& met, size_t& may_be_copied) {
  SmallVector<Way> ways;
  BlockList copied;
  for (BasicBlock* block : taken_from(start, [&](BasicBlock& block) { return !behind.contains(&block); }))
    for (BasicBlock* next : successors(block)) {
      if (!is_taken(*block, *next) || !behind.contains(next) || met.contains(next)) continue;
      if (!is_contained(ways, Way(block, next))) ways.push_back({block, next});
      for (BasicBlock* one : taken_from(*next)) copied.insert(one);
    }
  size_t size = 0;
  for (const BasicBlock* block : copied) size += block->size();
  if (size > may_be_copied) return false;
  may_be_copied -= size;
  copy_for(ways, copied);
  return true;
}

}  // namespace

bool put_tail_first(BranchInst& branch, unsigned way, const Blocks& waits, size_t& may_be_copied,
                    function_ref<bool(const Instruction&)> matters) {
  BasicBlock* fork = branch.getParent();
  BasicBlock& start = *branch.getSuccessor(way);
  auto has_what_matters = [&](BasicBlock& block) { return any_of(block, matters); };
  if (none_of(taken_from(start), [&](BasicBlock* block) { return has_what_matters(*block); })) return true;
  std::optional<LoopInfo> loops;  // until something changes
  for (BasicBlock* wait : taken_from(*branch.getSuccessor(1 - way))) {
    if (!waits.contains(wait)) continue;
    if (!loops) loops.emplace(DominatorTree(*fork->getParent()));
    const Loop* loop = loop_around(*fork, *wait, *loops);
    const BlockList behind = taken_from(*wait);
    BlockList in_turn = behind;
    if (loop)
      in_turn = taken_from(*wait, [&](BasicBlock& block) { return &block != loop->getHeader() || &block == wait; });
    const bool have_waited = in_turn.contains(fork);
    const BlockList met = leading_within(behind, [&](BasicBlock& block) {
      const bool is_of_turn = loop && loop->contains(&block) && (have_waited || !in_turn.contains(&block));
      return !is_of_turn && any_of(block, is_done_together);
    });
    auto first = [&] {
      const BlockList passed = taken_from(start, [&](BasicBlock& block) { return !met.contains(&block); });
      const BlockList leaving = leading_within(passed, [](BasicBlock& block) { return succ_empty(&block); });
      return leading_within(leaving, has_what_matters);
    };
    BlockList blocks = first();
    if (blocks.empty()) continue;
    BasicBlock* goal = wait;
    if (have_waited) {
      BasicBlock* latch = loop ? latch_of(*loop) : nullptr;
      if (!latch) return false;
      goal = SplitEdge(latch, loop->getHeader());
    } else if (any_of(blocks, [&](BasicBlock* block) { return in_turn.contains(block); })) {
      if (!leave_apart(start, in_turn, met, may_be_copied)) return false;
      blocks = first();
    }
    if (!put_before(*goal, blocks, loop)) return false;
    loops.reset();
  }
  return true;
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
