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
        dominators_(analyses.getResult<DominatorTreeAnalysis>(function)),
        aliases_(analyses.getResult<AAManager>(function)) {}

  bool run() {
    bool has_changed = false;
    for (Loop* loop : loops_) {
      const unsigned count = evolution_.getSmallConstantTripCount(loop);
      BasicBlock *before = loop->getLoopPreheader(), *latch = loop->getLoopLatch();
      PHINode* counter = number_of(*loop, evolution_);
      if (count < 2 || count > kMostSimdgroups || !before || !latch || !counter) continue;
      for (BasicBlock* block : loop->blocks())
        if (executes_only_in_first(*block, *loop, *latch, *counter, count))
          has_changed |= hoist_stores(*block, *loop, *before);
    }
    return has_changed;
  }

 private:
  // Whether only the first iteration executes the block.
  bool executes_only_in_first(BasicBlock& block, const Loop& loop, BasicBlock& latch, PHINode& counter,
                              unsigned count) const {
    BasicBlock* from = block.getSinglePredecessor();
    if (!from || &block == loop.getHeader() || !dominators_.dominates(from, &latch)) return false;
    auto* branch = dyn_cast<BranchInst>(from->getTerminator());
    if (!branch || !branch->isConditional() || branch->getSuccessor(0) == branch->getSuccessor(1)) return false;
    auto is_real_edge = [&](unsigned i) {
      auto* condition = dyn_cast_or_null<ConstantInt>(LoopIteration(loop, counter, i).constant(branch->getCondition()));
      return condition ? std::optional(branch->getSuccessor(condition->isZero()) == &block) : std::nullopt;
    };
    return is_real_edge(0) == true && all_of(seq(1u, count), [&](unsigned i) { return is_real_edge(i) == false; });
  }

  bool hoist_stores(BasicBlock& block, const Loop& loop, BasicBlock& before) {
    bool has_changed = false;
    for (Instruction& instruction : make_early_inc_range(block)) {
      auto* store = dyn_cast<StoreInst>(&instruction);
      if (!store || !store->isSimple() || !loop.hasLoopInvariantOperands(store)) continue;
      if (has_other_access(loop, *store, aliases_)) continue;
      store->moveBefore(before.getTerminator());
      has_changed = true;
    }
    return has_changed;
  }

  LoopInfo& loops_;
  ScalarEvolution& evolution_;
  DominatorTree& dominators_;
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
