#include "compiler/vectorize/early_exits.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <optional>
#include <utility>

#include "compiler/analysis/divergence.h"
#include "compiler/analysis/memory_after_barrier.h"
#include "compiler/ir/block_copies.h"
#include "compiler/ir/convergence_point.h"
#include "compiler/ir/ordering_edges.h"
#include "compiler/lowering/shared_tails.h"

namespace kiln {

using namespace llvm;

namespace {

// Instructions of all copies.
constexpr size_t kMaxCopied = 4000;

// Whether threads execute a convergent operation there.
bool has_convergent(const BlockList& blocks) {
  return any_of(blocks, [](const BasicBlock* block) { return any_of(*block, is_convergent); });
}

class EarlyExitLinearization {
 public:
  EarlyExitLinearization(Function& function, FunctionAnalysisManager& analyses, const Blocks& convergence_blocks)
      : function_(function),
        convergence_blocks_(convergence_blocks),
        reaching_(blocks_reaching_by_real_edges(convergence_blocks)),
        divergence_(analyses.getResult<DivergenceAnalysis>(function)),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(function)),
        loops_(analyses.getResult<LoopAnalysis>(function)) {}

  EarlyExits run() {
    if (convergence_blocks_.empty()) return EarlyExits::kNone;
    for (BasicBlock& block : function_) find_exit(block);
    if (exits_.empty() && tails_.empty()) return EarlyExits::kNone;
    for (const EarlyExit& exit : exits_) add_order(exit);
    EliminateUnreachableBlocks(function_);
    if (tails_.empty()) return EarlyExits::kFirst;
    for (const EarlyExit& tail : tails_)
      if (!order_tail(tail)) return EarlyExits::kTooLate;
    EliminateUnreachableBlocks(function_);
    repair_ssa(function_);
    return EarlyExits::kFirst;
  }

 private:
  struct EarlyExit {
    BranchInst* branch;
    unsigned successor;
    BlockList blocks;
    bool is_copied = false;
  };

  static bool writes(const BlockList& blocks) {
    return any_of(blocks, [](const BasicBlock* block) { return any_of(*block, writes_shared); });
  }

  static size_t size_of(const BlockList& blocks) {
    size_t size = 0;
    for (const BasicBlock* block : blocks) size += block->size();
    return size;
  }

  // Whether some threads may take one of the block's edges while others take the other.
  bool may_diverge(const BasicBlock& block) {
    if (divergence_.is_divergent_branch(block)) return true;
    if (!divergent_blocks_) divergent_blocks_ = divergent_blocks(loops_, divergence_, convergence_blocks_);
    return divergent_blocks_->contains(&block);
  }

  void find_exit(BasicBlock& block) {
    auto* branch = dyn_cast<BranchInst>(block.getTerminator());
    if (!branch || !branch->isConditional() || has_ordering_edge(block)) return;
    const bool is_second = reaching_.contains(branch->getSuccessor(0));
    if (is_second == reaching_.contains(branch->getSuccessor(1))) return;
    const unsigned successor = is_second ? 1 : 0;
    BasicBlock* exit_block = branch->getSuccessor(successor);
    const BlockList all = reachable_from(*exit_block);
    if (!writes(all) || !may_diverge(block)) return;
    const BasicBlockEdge edge(&block, exit_block);
    BlockList own, shared;
    for (BasicBlock* one : all) (dominators_.dominates(edge, one) ? own : shared).insert(one);
    const bool joins_after_loop = join_after_loop(block, own);
    const bool copies = !joins_after_loop && writes(shared) && !has_convergent(shared) && size_of(all) <= copy_budget_;
    const bool is_ordered = copies || (!joins_after_loop && writes(own));
    if (copies) copy_budget_ -= size_of(all);
    if (is_ordered) exits_.push_back({branch, successor, copies ? all : own, copies});
    if (joins_after_loop || (!copies && writes(shared)))
      tails_.push_back({branch, successor, is_ordered ? own : BlockList()});
  }

  // Whether threads that leave in different iterations execute a convergent operation together.
  bool join_after_loop(const BasicBlock& branch_block, const BlockList& own) const {
    const Loop* loop = loops_.getLoopFor(&branch_block);
    return loop &&
           any_of(own, [&](BasicBlock* block) { return !loop->contains(block) && any_of(*block, is_convergent); });
  }

  void add_order(const EarlyExit& exit) {
    BasicBlock* continuing = exit.branch->getSuccessor(1 - exit.successor);
    if (continuing->getSinglePredecessor()) FoldSingleEntryPHINodes(continuing);
    BasicBlock* branch_block = exit.branch->getParent();
    continuing = SplitEdge(branch_block, continuing);
    BlockList own = exit.blocks;
    if (exit.is_copied) own = copy_for({{branch_block, exit.branch->getSuccessor(exit.successor)}}, own);
    add_ordering_edges(own, *continuing);
  }

  // The blocks of `tail` are ordered already.
  bool order_tail(const EarlyExit& tail) {
    auto matters = [&](BasicBlock& barrier_block, const Instruction& instruction) {
      return !is_contained(tail.blocks, instruction.getParent()) &&
             memory_.try_emplace(&barrier_block, barrier_block).first->second.is_met_by(instruction);
    };
    return order_tail_before_barriers(*tail.branch, tail.successor, convergence_blocks_, copy_budget_, matters);
  }

  Function& function_;
  const Blocks& convergence_blocks_;
  const Blocks reaching_;
  const Divergence& divergence_;
  const DominatorTree& dominators_;
  const LoopInfo& loops_;
  // Computed on demand:
  DenseMap<const BasicBlock*, MemoryAfterBarrier> memory_;
  std::optional<Blocks> divergent_blocks_;
  SmallVector<EarlyExit> exits_, tails_;
  size_t copy_budget_ = kMaxCopied;
};

}  // namespace

EarlyExits linearize_early_exits(Function& function, FunctionAnalysisManager& analyses,
                                 const Blocks& convergence_blocks) {
  return EarlyExitLinearization(function, analyses, convergence_blocks).run();
}

}  // namespace kiln
