#include "compiler/analysis/divergence.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/CycleAnalysis.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Support/ErrorHandling.h>

#include <exception>
#include <tuple>
#include <utility>

namespace kiln {

using namespace llvm;

namespace {

// What a divergent branch makes divergent.
struct DivergentJoins {
  SmallVector<const BasicBlock*> joins;
  SmallVector<const PHINode*> phis;      // at these joins
  SmallVector<const BasicBlock*> exits;  // of loops around the branch that threads leave in different iterations
};

class JoinFinder {
 public:
  JoinFinder(Function& function, const CycleInfo& cycles, const PostDominatorTree& post_dominators)
      : cycles_(cycles), post_dominators_(post_dominators) {
    ReversePostOrderTraversal<Function*> order(&function);
    for (const BasicBlock* block : order) order_[block] = static_cast<unsigned>(order_.size());
  }

  DivergentJoins joins_after(const BasicBlock& branch) {
    labels_.clear();
    joins_.clear();
    loop_exits_.clear();
    for (const Cycle* cycle = cycles_.getCycle(&branch); cycle; cycle = cycle->getParentCycle()) {
      SmallVector<BasicBlock*> exits;
      cycle->getExitBlocks(exits);
      for (const BasicBlock* exit : exits) loop_exits_[exit].push_back(cycle);
    }
    const SmallVector<const BasicBlock*> blocks = blocks_after(branch);
    for (bool has_changed = true; has_changed;) {
      has_changed = false;
      for (const BasicBlock* block : blocks) has_changed |= update(*block, branch);
    }
    DivergentJoins found;
    for (const BasicBlock* block : blocks) {
      if (joins_.contains(block)) {
        found.joins.push_back(block);
        for (const PHINode& phi : block->phis())
          if (is_divergent_phi(phi, branch)) found.phis.push_back(&phi);
      }
      auto exited = loop_exits_.find(block);
      if (exited != loop_exits_.end() &&
          any_of(exited->second, [&](const Cycle* cycle) { return leaves_divergently(*block, *cycle); }))
        found.exits.push_back(block);
    }
    return found;
  }

 private:
  // Up to the block where all threads have joined, or all blocks if some threads reach that block in a later iteration.
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

  // Each block after those from which it gets labels, but for back edges. Among the loops around the branch, the inner
  // ones come first. Their headers, which belong to the next iteration, come last.
  SmallVector<const BasicBlock*> blocks_up_to(const BasicBlock* end, const BasicBlock& branch) const {
    SmallPtrSet<const BasicBlock*, 32> seen;
    SmallVector<const BasicBlock*> worklist(successors(&branch));
    SmallVector<std::tuple<unsigned, bool, unsigned, const BasicBlock*>> ordered;
    while (!worklist.empty()) {
      const BasicBlock* block = worklist.pop_back_val();
      if (!seen.insert(block).second) continue;
      const Cycle* cycle = cycle_of_both(block, branch);
      ordered.push_back(
          {~(cycle ? cycle->getDepth() : 0), begins_iteration(*block, branch), order_.lookup(block), block});
      if (block != end) append_range(worklist, successors(block));
    }
    sort(ordered);
    SmallVector<const BasicBlock*> blocks;
    for (const auto& entry : ordered) blocks.push_back(std::get<const BasicBlock*>(entry));
    return blocks;
  }

  // The loop of which the block is the only entry, or null.
  const Cycle* cycle_with_header(const BasicBlock& block) const {
    const Cycle* cycle = cycles_.getCycle(&block);
    return cycle && cycle->isReducible() && cycle->getHeader() == &block ? cycle : nullptr;
  }

  // A thread that returns to the header of a loop around the branch is in the next iteration. Threads in different
  // iterations join after the loop.
  bool begins_iteration(const BasicBlock& block, const BasicBlock& branch) const {
    const Cycle* cycle = cycle_with_header(block);
    return cycle && cycle->contains(&branch);
  }

  bool update(const BasicBlock& block, const BasicBlock& branch) {
    const BasicBlock* label = nullptr;
    bool is_join = joins_.contains(&block);  // never reset, so that the fixed point terminates
    auto merge_label = [&](const BasicBlock* other) {
      if (!other) return;
      is_join = is_join || (label && label != other);
      label = other;
    };
    for (const BasicBlock* predecessor : predecessors(&block)) {
      if (predecessor == &branch)
        merge_label(&block);
      else if (!begins_iteration(*predecessor, branch))
        merge_label(labels_.lookup(predecessor));
    }
    if (auto exited = loop_exits_.find(&block); exited != loop_exits_.end())
      for (const Cycle* cycle : exited->second)
        if (cycle->isReducible()) merge_label(labels_.lookup(cycle->getHeader()));
    if (is_join) {
      joins_.insert(&block);
      label = &block;
    }
    const BasicBlock*& known = labels_[&block];
    return std::exchange(known, label) != label;
  }

  // Whether the phi may have different values for threads that come from the branch.
  bool is_divergent_phi(const PHINode& phi, const BasicBlock& branch) const {
    // Threads that enter a loop together begin its next iterations together.
    const Cycle* cycle_of_header = cycle_with_header(*phi.getParent());
    if (cycle_of_header && cycle_of_header->contains(&branch)) cycle_of_header = nullptr;
    const Value* common = nullptr;
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
      const Value* value = phi.getIncomingValue(i);
      const BasicBlock* predecessor = phi.getIncomingBlock(i);
      if (isa<UndefValue>(value) || (cycle_of_header && cycle_of_header->contains(predecessor)) ||
          !reaches_through(branch, *predecessor, *phi.getParent()))
        continue;
      if (common && common != value) return true;
      common = value;
    }
    return false;
  }

  // Whether threads from the branch reach `block` through `predecessor`, even in a later iteration.
  bool reaches_through(const BasicBlock& branch, const BasicBlock& predecessor, const BasicBlock& block) const {
    if (&predecessor == &branch || (labels_.lookup(&predecessor) && !begins_iteration(predecessor, branch)))
      return true;
    auto exited = loop_exits_.find(&block);
    return exited != loop_exits_.end() && any_of(exited->second, [&](const Cycle* cycle) {
             return cycle->contains(&predecessor) && labels_.lookup(cycle->getHeader());
           });
  }

  bool leaves_divergently(const BasicBlock& exit, const Cycle& cycle) const {
    if (!labels_.lookup(&exit)) return false;
    return !cycle.isReducible() || (joins_.contains(&exit) && labels_.lookup(cycle.getHeader()));
  }

  const CycleInfo& cycles_;
  const PostDominatorTree& post_dominators_;
  DenseMap<const BasicBlock*, unsigned> order_;
  // State for one branch:
  DenseMap<const BasicBlock*, const BasicBlock*> labels_;
  SmallPtrSet<const BasicBlock*, 16> joins_;
  DenseMap<const BasicBlock*, SmallVector<const Cycle*, 2>> loop_exits_;  // the loops that a block is an exit of
};

}  // namespace

class DivergenceFinder {
 public:
  DivergenceFinder(Function& function, const CycleInfo& cycles, const PostDominatorTree& post_dominators,
                   Divergence& found)
      : function_(function), cycles_(cycles), join_finder_(function, cycles, post_dominators), found_(found) {}

  void run(const DifferenceOf& difference_of) {
    SmallVector<const Value*> sources;
    auto classify = [&](const Value& value) {
      switch (difference_of(value)) {
        case Difference::kSource: sources.push_back(&value); break;
        case Difference::kInherits: break;
        case Difference::kNone: uniform_.insert(&value); break;
      }
    };
    for (const Argument& argument : function_.args()) classify(argument);
    for (const Instruction& instruction : instructions(function_)) classify(instruction);
    for (const Value* source : sources) mark(*source);
    while (!worklist_.empty()) {
      const Value* value = worklist_.pop_back_val();
      const auto* instruction = dyn_cast<Instruction>(value);
      if (instruction && instruction->isTerminator())
        mark_branch(*instruction->getParent());
      else
        mark_users(*value);
    }
  }

 private:
  void mark(const Value& value) {
    if (uniform_.contains(&value) || !found_.divergent_.insert(&value).second) return;
    worklist_.push_back(&value);
  }

  void mark_users(const Value& value) {
    for (const User* user : value.users())
      if (isa<Instruction>(user)) mark(*user);
  }

  // Not all threads at the end of the block take the same edge.
  void mark_branch(const BasicBlock& branch) {
    if (succ_size(&branch) < 2) return;
    found_.branches_.insert(&branch);
    const DivergentJoins divergent = join_finder_.joins_after(branch);
    for (const PHINode* phi : divergent.phis) mark(*phi);
    for (const BasicBlock* join : divergent.joins) {
      // An irreducible loop that threads enter by different edges has no header at which they would join: nothing in it
      // is uniform.
      const Cycle* entered = nullptr;
      for (const Cycle* cycle = cycles_.getCycle(join); cycle; cycle = cycle->getParentCycle())
        if (!cycle->isReducible()) entered = cycle;
      if (!entered) continue;
      for (const BasicBlock* block : entered->blocks())
        for (const Instruction& instruction : *block) {
          uniform_.erase(&instruction);
          mark(instruction);
        }
    }
    for (const BasicBlock* exit : divergent.exits) {
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
  JoinFinder join_finder_;
  Divergence& found_;
  SmallVector<const Value*> worklist_;
  DenseSet<const Value*> uniform_;
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

bool Divergence::is_divergent_after_loops(const Value* value, const BasicBlock* block) const {
  if (is_divergent(value)) return true;
  const auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction) return false;
  for (const Cycle* cycle = cycles_->getCycle(instruction->getParent()); cycle && !(block && cycle->contains(block));
       cycle = cycle->getParentCycle())
    if (left_divergently_.contains(cycle)) return true;
  return false;
}

AnalysisKey DivergenceAnalysis::Key;

Divergence DivergenceAnalysis::run(Function& function, FunctionAnalysisManager& analyses) {
  // LLVM's analysis manager calls this, and no exception may pass it.
  try {
    return Divergence(function, analyses.getResult<CycleAnalysis>(function),
                      analyses.getResult<PostDominatorTreeAnalysis>(function), difference_of_);
  } catch (const std::exception& error) {
    report_fatal_error(error.what(), /*gen_crash_diag=*/false);
  }
}

}  // namespace kiln
