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
constexpr size_t kMostCopied = 4000;

// Whether threads do something together there.
bool exchange(const BlockList& blocks) {
  return any_of(blocks, [](const BasicBlock* block) { return any_of(*block, is_convergent); });
}

class EarlyExitLinearization {
 public:
  EarlyExitLinearization(Function& function, FunctionAnalysisManager& analyses, const Blocks& waits)
      : function_(function),
        waits_(waits),
        leading_(blocks_always_reaching(waits)),
        divergence_(analyses.getResult<DivergenceAnalysis>(function)),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(function)),
        loops_(analyses.getResult<LoopAnalysis>(function)) {}

  EarlyExits run() {
    if (waits_.empty()) return EarlyExits::kNone;
    for (BasicBlock& block : function_) find(block);
    if (found_.empty() && tails_.empty()) return EarlyExits::kNone;
    for (const Leaving& leaving : found_) order(leaving);
    EliminateUnreachableBlocks(function_);
    if (tails_.empty()) return EarlyExits::kFirst;
    for (const Leaving& tail : tails_)
      if (!put_first(tail)) return EarlyExits::kTooLate;
    EliminateUnreachableBlocks(function_);
    define_uses(function_);
    return EarlyExits::kFirst;
  }

 private:
  struct Leaving {
    BranchInst* branch;
    unsigned way;
    BlockList blocks;
    bool is_copied = false;
  };

  static bool write(const BlockList& blocks) {
    return any_of(blocks, [](const BasicBlock* block) { return any_of(*block, writes_shared); });
  }

  static size_t size_of(const BlockList& blocks) {
    size_t size = 0;
    for (const BasicBlock* block : blocks) size += block->size();
    return size;
  }

  // Whether some may take one of the block's ways while others go on.
  bool parts(const BasicBlock& block) {
    if (divergence_.is_divergent_branch(block)) return true;
    if (!apart_) apart_ = divergent_blocks(loops_, divergence_, waits_);
    return apart_->contains(&block);
  }

  void find(BasicBlock& block) {
    auto* branch = dyn_cast<BranchInst>(block.getTerminator());
    if (!branch || !branch->isConditional() || has_ordering_edge(block)) return;
    const bool is_second = leading_.contains(branch->getSuccessor(0));
    if (is_second == leading_.contains(branch->getSuccessor(1))) return;
    const unsigned way = is_second ? 1 : 0;
    BasicBlock* leaves = branch->getSuccessor(way);
    const BlockList all = reachable_from(*leaves);
    if (!write(all) || !parts(block)) return;
    const BasicBlockEdge edge(&block, leaves);
    BlockList own, shared;
    for (BasicBlock* one : all) (dominators_.dominates(edge, one) ? own : shared).insert(one);
    const bool meet = join_after_loop(block, own);
    const bool shares = !meet && write(shared) && !exchange(shared) && size_of(all) <= may_be_copied_;
    const bool is_ordered = shares || (!meet && write(own));
    if (shares) may_be_copied_ -= size_of(all);
    if (is_ordered) found_.push_back({branch, way, shares ? all : own, shares});
    if (meet || (!shares && write(shared))) tails_.push_back({branch, way, is_ordered ? own : BlockList()});
  }

  // Whether those that leave in different iterations exchange values.
  bool join_after_loop(const BasicBlock& fork, const BlockList& own) const {
    const Loop* loop = loops_.getLoopFor(&fork);
    return loop &&
           any_of(own, [&](BasicBlock* block) { return !loop->contains(block) && any_of(*block, is_convergent); });
  }

  void order(const Leaving& leaving) {
    BasicBlock* goes_on = leaving.branch->getSuccessor(1 - leaving.way);
    if (goes_on->getSinglePredecessor()) FoldSingleEntryPHINodes(goes_on);
    BasicBlock* fork = leaving.branch->getParent();
    goes_on = SplitEdge(fork, goes_on);
    BlockList own = leaving.blocks;
    if (leaving.is_copied) own = copy_for({{fork, leaving.branch->getSuccessor(leaving.way)}}, own);
    add_ordering_edges(own, *goes_on);
  }

  // The blocks of `tail` are already.
  bool put_first(const Leaving& tail) {
    auto matters = [&](BasicBlock& wait, const Instruction& instruction) {
      return !is_contained(tail.blocks, instruction.getParent()) &&
             memory_.try_emplace(&wait, wait).first->second.is_met_by(instruction);
    };
    return put_tail_first(*tail.branch, tail.way, waits_, may_be_copied_, matters);
  }

  Function& function_;
  const Blocks& waits_;
  const Blocks leading_;
  const Divergence& divergence_;
  const DominatorTree& dominators_;
  const LoopInfo& loops_;
  // Where they are asked for:
  DenseMap<const BasicBlock*, MemoryAfterBarrier> memory_;
  std::optional<Blocks> apart_;
  SmallVector<Leaving> found_, tails_;
  size_t may_be_copied_ = kMostCopied;
};

}  // namespace

EarlyExits linearize_early_exits(Function& function, FunctionAnalysisManager& analyses, const Blocks& waits) {
  return EarlyExitLinearization(function, analyses, waits).run();
}

}  // namespace kiln
