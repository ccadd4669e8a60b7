#include "compiler/analysis/barrier_uniformity.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>

#include "compiler/analysis/divergence.h"
#include "compiler/analysis/uniformity.h"
#include "compiler/ir/ordering_edges.h"
#include "compiler/ir/pseudo_intrinsics.h"

namespace kiln {

using namespace llvm;

namespace {

void go_on_to(BasicBlock& next, BasicBlock& block) {
  SmallVector<BasicBlock*> ways(successors(&block));
  ways.erase(find(ways, &next));  // of several that lead there one stays
  for (BasicBlock* way : ways) way->removePredecessor(&block);
  Instruction* before = block.getTerminator();
  IRBuilder<>(before).CreateBr(&next);
  before->eraseFromParent();
}

// Takes away the ways back that nobody takes where they are all that leads to a barrier.
void leave_for_good(const Blocks& barriers, Function& function) {
  const Blocks leading = blocks_always_reaching(barriers);
  for (BasicBlock& block : function)
    if (has_ordering_edge(block) && !leading.contains(&block)) go_on_to(*block.getTerminator()->getSuccessor(1), block);
}

// Takes away the ways that lead to no barrier.
void keep_edges_to(const Blocks& barriers, Function& function) {
  const Blocks leading = blocks_reaching(barriers);
  for (BasicBlock& block : function) {
    if (!leading.contains(&block)) continue;
    SmallSetVector<BasicBlock*, 4> kept;
    for (BasicBlock* next : successors(&block))
      if (leading.contains(next)) kept.insert(next);
    if (kept.empty())
      changeToUnreachable(block.getTerminator());
    else if (kept.size() == 1)
      go_on_to(*kept.front(), block);
  }
  removeUnreachableBlocks(function);
}

class Agreement {
 public:
  Agreement(const LoopInfo& loops, Blocks barriers)
      : loops_(loops), barriers_(std::move(barriers)), will_wait_(blocks_reaching(barriers_)) {}

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
  const Blocks barriers_, will_wait_;
};

bool agree(Function& function, FunctionAnalysisManager& analyses, const Blocks& barriers) {
  auto& divergence = analyses.getResult<DivergenceAnalysis>(function);
  Agreement agreement(analyses.getResult<LoopAnalysis>(function), barriers);
  return all_of(function, [&](const BasicBlock& block) {
    return !divergence.is_divergent_branch(block) || agreement.meets(block);
  });
}

// Of the threads that will wait, those that take different ways at a branch.
class Parting {
 public:
  Parting(const LoopInfo& loops, const Blocks& waits)
      : loops_(loops), waits_(waits), will_wait_(blocks_always_reaching(waits)) {}

  Blocks forks(const Divergence& divergence) const {
    Blocks forks;
    for (const BasicBlock* block : will_wait_)
      if (divergence.is_divergent_branch(*block) && ways(*block).size() > 1) forks.insert(block);
    return forks;
  }

  // The blocks from the fork to where all meet again.
  Blocks apart(const BasicBlock& fork) const {
    // A place that all come to is nearer than another if each way to that leads over it; breadth first it is found
    // before.
    SmallSetVector<const BasicBlock*, 16> behind;
    const auto first_edges = ways(fork);
    behind.insert(first_edges.begin(), first_edges.end());
    for (unsigned i = 0; i < behind.size(); ++i) {
      Blocks passed;
      if (behind[i] != &fork && all_pass(fork, *behind[i], passed)) return passed;
      const auto next_ones = ways(*behind[i]);
      behind.insert(next_ones.begin(), next_ones.end());
    }
    return Blocks(behind.begin(), behind.end());
  }

 private:
  SmallVector<const BasicBlock*, 2> ways(const BasicBlock& block) const {
    SmallVector<const BasicBlock*, 2> ways;
    for (const BasicBlock* next : successors(&block))
      if (will_wait_.contains(next) && is_real_edge(block, *next)) ways.push_back(next);
    return ways;
  }

  // Whether whoever goes on from `fork` comes to `join` before the next wait, in the same iteration; and what they come
  // through.
  bool all_pass(const BasicBlock& fork, const BasicBlock& join, Blocks& passed) const {
    SmallVector<const BasicBlock*> waiting{&fork};
    while (!waiting.empty()) {
      const BasicBlock* from = waiting.pop_back_val();
      for (const BasicBlock* next : ways(*from)) {
        const Loop* loop = loops_.getLoopFor(next);
        const bool is_next_iteration = loop && loop->getHeader() == next && loop->contains(from);
        if (is_next_iteration && loop->contains(&fork) && loop->contains(&join)) return false;
        if (next == &join) continue;
        if (waits_.contains(next)) return false;
        if (passed.insert(next).second) waiting.push_back(next);
      }
    }
    return true;
  }

  const LoopInfo& loops_;
  const Blocks& waits_;
  const Blocks will_wait_;
};

}  // namespace

Blocks blocks_with(Function& function, function_ref<bool(const Instruction&)> predicate) {
  Blocks found;
  for (const BasicBlock& block : function)
    if (any_of(block, predicate)) found.insert(&block);
  return found;
}

Blocks blocks_reaching_by_edges(const Blocks& blocks,
                                function_ref<bool(const BasicBlock& from, const BasicBlock& to)> is_edge) {
  Blocks leading;
  SmallVector<const BasicBlock*> waiting(blocks.begin(), blocks.end());
  while (!waiting.empty()) {
    const BasicBlock* block = waiting.pop_back_val();
    if (!leading.insert(block).second) continue;
    for (const BasicBlock* before : predecessors(block))
      if (is_edge(*before, *block)) waiting.push_back(before);
  }
  return leading;
}

Blocks blocks_reaching(const Blocks& blocks) {
  return blocks_reaching_by_edges(blocks, [](const BasicBlock&, const BasicBlock&) { return true; });
}

Blocks blocks_always_reaching(const Blocks& blocks) { return blocks_reaching_by_edges(blocks, is_real_edge); }

Blocks divergent_blocks(const LoopInfo& loops, const Divergence& divergence, const Blocks& waits) {
  const Parting parting(loops, waits);
  Blocks found;
  for (const BasicBlock* fork : parting.forks(divergence)) {
    const Blocks apart = parting.apart(*fork);
    found.insert(apart.begin(), apart.end());
  }
  return found;
}

bool barriers_are_uniform(Function& function, FunctionAnalysisManager& analyses, const Blocks& barriers) {
  if (barriers.empty() || agree(function, analyses, barriers)) return true;
  ValueToValueMapTy copies;
  Function* waiting = CloneFunction(&function, copies);
  Blocks copied;
  for (const BasicBlock* barrier : barriers) copied.insert(cast<BasicBlock>(copies[barrier]));
  leave_for_good(copied, *waiting);
  keep_edges_to(copied, *waiting);
  // An address may be known there to be the same that is not in the function; then lanes load apart what others change.
  ThreadAnalyses apart(Lanes::kIndependent);
  const bool has_agreed = agree(*waiting, apart.functions(), copied);
  apart.forget(*waiting);
  waiting->eraseFromParent();
  return has_agreed;
}

}  // namespace kiln
