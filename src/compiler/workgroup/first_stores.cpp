#include "compiler/workgroup/first_stores.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/Sequence.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>

#include <optional>

#include "compiler/analysis/loop_iteration.h"

namespace kiln {
namespace {

using namespace llvm;

class FirstStores {
 public:
  FirstStores(Function& function, FunctionAnalysisManager& analyses)
      : loops_(analyses.getResult<LoopAnalysis>(function)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(function)),
        tree_(analyses.getResult<DominatorTreeAnalysis>(function)),
        aliases_(analyses.getResult<AAManager>(function)) {}

  bool run() {
    bool has_changed = false;
    for (Loop* loop : loops_) {
      const unsigned count = evolution_.getSmallConstantTripCount(loop);
      BasicBlock *before = loop->getLoopPreheader(), *latch = loop->getLoopLatch();
      PHINode* number = number_of(*loop, evolution_);
      if (count < 2 || count > kMostSimdgroups || !before || !latch || !number) continue;
      for (BasicBlock* block : loop->blocks())
        if (is_of_first(*block, *loop, *latch, *number, count)) has_changed |= leave(*block, *loop, *before);
    }
    return has_changed;
  }

 private:
  // Whether the first iteration comes to it and no other one does.
  bool is_of_first(BasicBlock& block, const Loop& loop, BasicBlock& latch, PHINode& number, unsigned count) const {
    BasicBlock* from = block.getSinglePredecessor();
    if (!from || &block == loop.getHeader() || !tree_.dominates(from, &latch)) return false;
    auto* branch = dyn_cast<BranchInst>(from->getTerminator());
    if (!branch || !branch->isConditional() || branch->getSuccessor(0) == branch->getSuccessor(1)) return false;
    auto is_real_edge = [&](unsigned i) {
      auto* condition = dyn_cast_or_null<ConstantInt>(LoopIteration(loop, number, i).constant(branch->getCondition()));
      return condition ? std::optional(branch->getSuccessor(condition->isZero()) == &block) : std::nullopt;
    };
    return is_real_edge(0) == true && all_of(seq(1u, count), [&](unsigned i) { return is_real_edge(i) == false; });
  }

  bool leave(BasicBlock& block, const Loop& loop, BasicBlock& before) {
    bool has_changed = false;
    for (Instruction& instruction : make_early_inc_range(block)) {
      auto* store = dyn_cast<StoreInst>(&instruction);
      if (!store || !store->isSimple() || !loop.hasLoopInvariantOperands(store)) continue;
      if (is_accessed_otherwise(loop, *store, aliases_)) continue;
      store->moveBefore(before.getTerminator());
      has_changed = true;
    }
    return has_changed;
  }

  LoopInfo& loops_;
  ScalarEvolution& evolution_;
  DominatorTree& tree_;
  AAResults& aliases_;
};

}  // namespace

PreservedAnalyses FirstStoresPass::run(Function& function, FunctionAnalysisManager& analyses) {
  if (!FirstStores(function, analyses).run()) return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}

}  // namespace kiln
