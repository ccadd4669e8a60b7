#include "compiler/analysis/divergence.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/CycleAnalysis.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>

#include <tuple>
#include <utility>

namespace kiln {

using namespace llvm;

namespace {

// Where ways meet that a branch parts.
struct Meetings {
  SmallVector<const BasicBlock*> joins;
  SmallVector<const PHINode*> choices;   // of what came by those ways
  SmallVector<const BasicBlock*> exits;  // of loops around the branch, that are left in different iterations
};

class JoinFinder {
 public:
  JoinFinder(Function& function, const CycleInfo& cycles, const PostDominatorTree& post_dominators)
      : cycles_(cycles), post_dominators_(post_dominators) {
    ReversePostOrderTraversal<Function*> order(&function);
    for (const BasicBlock* block : order) order_[block] = static_cast<unsigned>(order_.size());
  }

  Meetings behind(const BasicBlock& branch) {
    labels_.clear();
    joins_.clear();
    loop_ends_.clear();
    for (const Cycle* cycle = cycles_.getCycle(&branch); cycle; cycle = cycle->getParentCycle()) {
      SmallVector<BasicBlock*> exits;
      cycle->getExitBlocks(exits);
      for (const BasicBlock* exit : exits) loop_ends_[exit].push_back(cycle);
    }
    const SmallVector<const BasicBlock*> blocks = blocks_after(branch);
    for (bool has_changed = true; has_changed;) {
      has_changed = false;
      for (const BasicBlock* block : blocks) has_changed |= update(*block, branch);
    }
    Meetings meetings;
    for (const BasicBlock* block : blocks) {
      if (joins_.contains(block)) {
        meetings.joins.push_back(block);
        for (const PHINode& phi : block->phis())
          if (chooses(phi, branch)) meetings.choices.push_back(&phi);
      }
      auto ends = loop_ends_.find(block);
      if (ends != loop_ends_.end() &&
          any_of(ends->second, [&](const Cycle* cycle) { return leaves_divergently(*block, *cycle); }))
        meetings.exits.push_back(block);
    }
    return meetings;
  }

 private:
  // Up to where all have met, or all where some come there in a later iteration than others.
  SmallVector<const BasicBlock*> blocks_after(const BasicBlock& branch) const {
    const auto* node = post_dominators_.getNode(&branch);
    const BasicBlock* end = node && node->getIDom() ? node->getIDom()->getBlock() : nullptr;
    SmallVector<const BasicBlock*> blocks = blocks_up_to(end, branch);
    for (const Cycle* cycle = cycle_of_both(end, branch); cycle; cycle = cycle->getParentCycle())
      if (!cycle->isReducible() || (cycle->getHeader() != end && is_contained(blocks, cycle->getHeader())))
        return blocks_up_to(nullptr, branch);
    return blocks;
  }

  // The innermost loop around the branch and the block.
  const Cycle* cycle_of_both(const BasicBlock* block, const BasicBlock& branch) const {
    const Cycle* cycle = block ? cycles_.getCycle(block) : nullptr;
    while (cycle && !cycle->contains(&branch)) cycle = cycle->getParentCycle();
    return cycle;
  }

  // In an order in which a block comes after those from which it gets labels, but for ways back: of loops around the
  // branch the inner ones come first, and their headers, which are of the next iteration, last.
  SmallVector<const BasicBlock*> blocks_up_to(const BasicBlock* end, const BasicBlock& branch) const {
    SmallPtrSet<const BasicBlock*, 32> seen;
    SmallVector<const BasicBlock*> waiting(successors(&branch));
    SmallVector<std::tuple<unsigned, bool, unsigned, const BasicBlock*>> places;
    while (!waiting.empty()) {
      const BasicBlock* block = waiting.pop_back_val();
      if (!seen.insert(block).second) continue;
      const Cycle* cycle = cycle_of_both(block, branch);
      places.push_back(
          {~(cycle ? cycle->getDepth() : 0), begins_iteration(*block, branch), order_.lookup(block), block});
      if (block != end) append_range(waiting, successors(block));
    }
    sort(places);
    SmallVector<const BasicBlock*> blocks;
    for (const auto& place : places) blocks.push_back(std::get<const BasicBlock*>(place));
    return blocks;
  }

  // The loop whose only entry the block is, or null.
  const Cycle* begun_at(const BasicBlock& block) const {
    const Cycle* cycle = cycles_.getCycle(&block);
    return cycle && cycle->isReducible() && cycle->getHeader() == &block ? cycle : nullptr;
  }

  // Who comes round to the beginning of a loop around the branch is in the next iteration: those that are in different
  // ones meet behind the loop.
  bool begins_iteration(const BasicBlock& block, const BasicBlock& branch) const {
    const Cycle* cycle = begun_at(block);
    return cycle && cycle->contains(&branch);
  }

  bool update(const BasicBlock& block, const BasicBlock& branch) {
    const BasicBlock* label = nullptr;
    bool is_join = joins_.contains(&block);  // for good, so that an end is found
    auto meet = [&](const BasicBlock* other) {
      if (!other) return;
      is_join = is_join || (label && label != other);
      label = other;
    };
    for (const BasicBlock* before : predecessors(&block)) {
      if (before == &branch)
        meet(&block);
      else if (!begins_iteration(*before, branch))
        meet(labels_.lookup(before));
    }
    if (auto ends = loop_ends_.find(&block); ends != loop_ends_.end())
      for (const Cycle* cycle : ends->second)
        if (cycle->isReducible()) meet(labels_.lookup(cycle->getHeader()));
    if (is_join) {
      joins_.insert(&block);
      label = &block;
    }
    const BasicBlock*& known = labels_[&block];
    return std::exchange(known, label) != label;
  }

  // Whether it may have one value for some that come from the branch and another for others.
  bool chooses(const PHINode& phi, const BasicBlock& branch) const {
    // Those that begin a loop together come round to its next iterations together.
    const Cycle* begun = begun_at(*phi.getParent());
    if (begun && begun->contains(&branch)) begun = nullptr;
    const Value* chosen = nullptr;
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
      const Value* value = phi.getIncomingValue(i);
      const BasicBlock* before = phi.getIncomingBlock(i);
      if (isa<UndefValue>(value) || (begun && begun->contains(before)) ||
          !comes_from(branch, *before, *phi.getParent()))
        continue;
      if (chosen && chosen != value) return true;
      chosen = value;
    }
    return false;
  }

  // Whether some come from the branch by way of `before` to `block`, be it in a later iteration.
  bool comes_from(const BasicBlock& branch, const BasicBlock& before, const BasicBlock& block) const {
    if (&before == &branch || (labels_.lookup(&before) && !begins_iteration(before, branch))) return true;
    auto ends = loop_ends_.find(&block);
    return ends != loop_ends_.end() && any_of(ends->second, [&](const Cycle* cycle) {
             return cycle->contains(&before) && labels_.lookup(cycle->getHeader());
           });
  }

  bool leaves_divergently(const BasicBlock& exit, const Cycle& cycle) const {
    if (!labels_.lookup(&exit)) return false;
    return !cycle.isReducible() || (joins_.contains(&exit) && labels_.lookup(cycle.getHeader()));
  }

  const CycleInfo& cycles_;
  const PostDominatorTree& post_dominators_;
  DenseMap<const BasicBlock*, unsigned> order_;
  // Of one branch:
  DenseMap<const BasicBlock*, const BasicBlock*> labels_;
  SmallPtrSet<const BasicBlock*, 16> joins_;
  DenseMap<const BasicBlock*, SmallVector<const Cycle*, 2>> loop_ends_;  // which loops a block is behind
};

}  // namespace

class DivergenceFinder {
 public:
  DivergenceFinder(Function& function, const CycleInfo& cycles, const PostDominatorTree& post_dominators,
                   Divergence& found)
      : function_(function), cycles_(cycles), meetings_(function, cycles, post_dominators), found_(found) {}

  void run(const DifferenceOf& difference_of) {
    SmallVector<const Value*> sources;
    auto ask = [&](const Value& value) {
      switch (difference_of(value)) {
        case Difference::kSource: sources.push_back(&value); break;
        case Difference::kInherits: break;
        case Difference::kNone: same_.insert(&value); break;
      }
    };
    for (const Argument& argument : function_.args()) ask(argument);
    for (const Instruction& instruction : instructions(function_)) ask(instruction);
    for (const Value* source : sources) mark(*source);
    while (!waiting_.empty()) {
      const Value* value = waiting_.pop_back_val();
      const auto* instruction = dyn_cast<Instruction>(value);
      if (instruction && instruction->isTerminator())
        part(*instruction->getParent());
      else
        mark_users(*value);
    }
  }

 private:
  void mark(const Value& value) {
    if (same_.contains(&value) || !found_.divergent_.insert(&value).second) return;
    waiting_.push_back(&value);
  }

  void mark_users(const Value& value) {
    for (const User* user : value.users())
      if (isa<Instruction>(user)) mark(*user);
  }

  // Not all that come to the end of the block go the same way.
  void part(const BasicBlock& branch) {
    if (succ_size(&branch) < 2) return;
    found_.branches_.insert(&branch);
    const Meetings meetings = meetings_.behind(branch);
    for (const PHINode* phi : meetings.choices) mark(*phi);
    for (const BasicBlock* join : meetings.joins) {
      // A loop into which they come by different ways has no beginning at which they would meet; they agree on nothing.
      const Cycle* entered = nullptr;
      for (const Cycle* cycle = cycles_.getCycle(join); cycle; cycle = cycle->getParentCycle())
        if (!cycle->isReducible()) entered = cycle;
      if (!entered) continue;
      for (const BasicBlock* block : entered->blocks())
        for (const Instruction& instruction : *block) {
          same_.erase(&instruction);
          mark(instruction);
        }
    }
    for (const BasicBlock* exit : meetings.exits) {
      const Cycle* left = cycles_.getCycle(&branch);
      while (left->getParentCycle() && !left->getParentCycle()->contains(exit)) left = left->getParentCycle();
      leave_divergently(*left);
    }
  }

  void leave_divergently(const Cycle& cycle) {
    if (!found_.left_divergently_.insert(&cycle).second) return;
    for (const BasicBlock* block : cycle.blocks())
      for (const Instruction& instruction : *block)
        for (const User* user : instruction.users())
          if (!cycle.contains(cast<Instruction>(user)->getParent())) mark(*user);
  }

  Function& function_;
  const CycleInfo& cycles_;
  JoinFinder meetings_;
  Divergence& found_;
  SmallVector<const Value*> waiting_;
  DenseSet<const Value*> same_;
};

Divergence::Divergence(Function& function, const CycleInfo& cycles, const PostDominatorTree& post_dominators,
                       const DifferenceOf& difference_of)
    : cycles_(&cycles) {
  DivergenceFinder(function, cycles, post_dominators, *this).run(difference_of);
}

bool Divergence::is_divergent_at(const Use& use) const {
  return is_divergent_after_loops(use.get(), cast<Instruction>(use.getUser())->getParent());
}

bool Divergence::is_divergent_after_loops(const Value* value) const { return is_divergent_after_loops(value, nullptr); }

bool Divergence::is_divergent_after_loops(const Value* value, const BasicBlock* where) const {
  if (is_divergent(value)) return true;
  const auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction) return false;
  for (const Cycle* cycle = cycles_->getCycle(instruction->getParent()); cycle && !(where && cycle->contains(where));
       cycle = cycle->getParentCycle())
    if (left_divergently_.contains(cycle)) return true;
  return false;
}

AnalysisKey DivergenceAnalysis::Key;

Divergence DivergenceAnalysis::run(Function& function, FunctionAnalysisManager& analyses) {
  return Divergence(function, analyses.getResult<CycleAnalysis>(function),
                    analyses.getResult<PostDominatorTreeAnalysis>(function), difference_of_);
}

}  // namespace kiln
