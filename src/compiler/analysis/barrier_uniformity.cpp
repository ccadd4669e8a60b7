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

void branch_to(BasicBlock& next, BasicBlock& block) {
  SmallVector<BasicBlock*> removed(successors(&block));
  removed.erase(find(removed, &next));  // keeps one of several edges to it
  for (BasicBlock* successor : removed) successor->removePredecessor(&block);
  Instruction* terminator = block.getTerminator();
  IRBuilder<>(terminator).CreateBr(&next);
  terminator->eraseFromParent();
}

// Removes ordering back edges where only they lead to a barrier.
void remove_ordering_edges(const Blocks& barriers, Function& function) {
  const Blocks reaching = blocks_reaching_by_real_edges(barriers);
  for (BasicBlock& block : function)
    if (has_ordering_edge(block) && !reaching.contains(&block))
      branch_to(*block.getTerminator()->getSuccessor(1), block);
}

// Removes the edges that lead to no barrier.
void keep_edges_to(const Blocks& barriers, Function& function) {
  const Blocks reaching = blocks_reaching(barriers);
  for (BasicBlock& block : function) {
    if (!reaching.contains(&block)) continue;
    SmallSetVector<BasicBlock*, 4> kept;
    for (BasicBlock* next : successors(&block))
      if (reaching.contains(next)) kept.insert(next);
    if (kept.empty())
      changeToUnreachable(block.getTerminator());
    else if (kept.size() == 1)
      branch_to(*kept.front(), block);
  }
  removeUnreachableBlocks(function);
}

class UniformityCheck {
 public:
  UniformityCheck(const LoopInfo& loops, Blocks barriers)
      : loops_(loops), barriers_(std::move(barriers)), reaching_(blocks_reaching(barriers_)) {}

  // Whether threads that diverge at the branch reconverge before their next barrier.
  bool joins_before_barrier(const BasicBlock& branch) const {
    if (count_if(successors(&branch), [&](const BasicBlock* next) { return reaching_.contains(next); }) < 2)
      return true;
    return any_of(reaching_, [&](const BasicBlock* join) { return join != &branch && all_reach(branch, *join); });
  }

 private:
  // Whether all threads from `branch` to a barrier reach `join` first, in the same iteration.
  bool all_reach(const BasicBlock& branch, const BasicBlock& join) const {
    Blocks seen;
    SmallVector<const BasicBlock*> worklist;
    auto visit_successors = [&](const BasicBlock* from) {
      for (const BasicBlock* next : successors(from)) {
        if (!reaching_.contains(next)) continue;
        const Loop* loop = loops_.getLoopFor(next);
        bool is_next_iteration = loop && loop->getHeader() == next && loop->contains(from);
        if (is_next_iteration && loop->contains(&branch) && loop->contains(&join)) return false;
        if (next != &join && seen.insert(next).second) worklist.push_back(next);
      }
      return true;
    };
    if (!visit_successors(&branch)) return false;
    while (!worklist.empty()) {
      const BasicBlock* block = worklist.pop_back_val();
      if (barriers_.contains(block) || !visit_successors(block)) return false;
    }
    return true;
  }

  const LoopInfo& loops_;
  const Blocks barriers_, reaching_;
};

bool branches_join_before(Function& function, FunctionAnalysisManager& analyses, const Blocks& barriers) {
  auto& divergence = analyses.getResult<DivergenceAnalysis>(function);
  UniformityCheck check(analyses.getResult<LoopAnalysis>(function), barriers);
  return all_of(function, [&](const BasicBlock& block) {
    return !divergence.is_divergent_branch(block) || check.joins_before_barrier(block);
  });
}

// Regions in which threads that will reach a barrier are divergent.
class DivergentRegions {
 public:
  DivergentRegions(const LoopInfo& loops, const Blocks& barriers)
      : loops_(loops), barriers_(barriers), reaching_(blocks_reaching_by_real_edges(barriers)) {}

  Blocks divergent_branches(const Divergence& divergence) const {
    Blocks branches;
    for (const BasicBlock* block : reaching_)
      if (divergence.is_divergent_branch(*block) && edges_to_barriers(*block).size() > 1) branches.insert(block);
    return branches;
  }

  // The blocks from the branch to the first block that all threads reach.
  Blocks region_of(const BasicBlock& branch) const {
    // A block that all threads reach is nearer than another if every path to the other passes through it. Breadth-first
    // search finds it first.
    SmallSetVector<const BasicBlock*, 16> reached;
    const auto first = edges_to_barriers(branch);
    reached.insert(first.begin(), first.end());
    for (unsigned i = 0; i < reached.size(); ++i) {
      Blocks visited;
      if (reached[i] != &branch && all_reach(branch, *reached[i], visited)) return visited;
      const auto next = edges_to_barriers(*reached[i]);
      reached.insert(next.begin(), next.end());
    }
    return Blocks(reached.begin(), reached.end());
  }

 private:
  SmallVector<const BasicBlock*, 2> edges_to_barriers(const BasicBlock& block) const {
    SmallVector<const BasicBlock*, 2> found;
    for (const BasicBlock* next : successors(&block))
      if (reaching_.contains(next) && is_real_edge(block, *next)) found.push_back(next);
    return found;
  }

  // Whether all threads from `branch` reach `join` before the next barrier, in the same iteration. Collects the blocks
  // that they pass.
  bool all_reach(const BasicBlock& branch, const BasicBlock& join, Blocks& visited) const {
    SmallVector<const BasicBlock*> worklist{&branch};
    while (!worklist.empty()) {
      const BasicBlock* from = worklist.pop_back_val();
      for (const BasicBlock* next : edges_to_barriers(*from)) {
        const Loop* loop = loops_.getLoopFor(next);
        const bool is_next_iteration = loop && loop->getHeader() == next && loop->contains(from);
        if (is_next_iteration && loop->contains(&branch) && loop->contains(&join)) return false;
        if (next == &join) continue;
        if (barriers_.contains(next)) return false;
        if (visited.insert(next).second) worklist.push_back(next);
      }
    }
    return true;
  }

  const LoopInfo& loops_;
  const Blocks& barriers_;
  const Blocks reaching_;
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
  Blocks reaching;
  SmallVector<const BasicBlock*> worklist(blocks.begin(), blocks.end());
  while (!worklist.empty()) {
    const BasicBlock* block = worklist.pop_back_val();
    if (!reaching.insert(block).second) continue;
    for (const BasicBlock* predecessor : predecessors(block))
      if (is_edge(*predecessor, *block)) worklist.push_back(predecessor);
  }
  return reaching;
}

Blocks blocks_reaching(const Blocks& blocks) {
  return blocks_reaching_by_edges(blocks, [](const BasicBlock&, const BasicBlock&) { return true; });
}

Blocks blocks_reaching_by_real_edges(const Blocks& blocks) { return blocks_reaching_by_edges(blocks, is_real_edge); }

Blocks divergent_blocks(const LoopInfo& loops, const Divergence& divergence, const Blocks& barriers) {
  const DivergentRegions regions(loops, barriers);
  Blocks found;
  for (const BasicBlock* branch : regions.divergent_branches(divergence)) {
    const Blocks region = regions.region_of(*branch);
    found.insert(region.begin(), region.end());
  }
  return found;
}

bool barriers_are_uniform(Function& function, FunctionAnalysisManager& analyses, const Blocks& barriers) {
  if (barriers.empty() || branches_join_before(function, analyses, barriers)) return true;
  ValueToValueMapTy copies;
  Function* copy = CloneFunction(&function, copies);
  Blocks copied;
  for (const BasicBlock* barrier : barriers) copied.insert(cast<BasicBlock>(copies[barrier]));
  remove_ordering_edges(copied, *copy);
  keep_edges_to(copied, *copy);
  // An address may be uniform in the copy but not in the function. Lanes then load separately what other threads
  // change.
  ThreadAnalyses copy_analyses(Lanes::kIndependent);
  const bool is_uniform = branches_join_before(*copy, copy_analyses.functions(), copied);
  copy_analyses.invalidate(*copy);
  copy->eraseFromParent();
  return is_uniform;
}

}  // namespace kiln
