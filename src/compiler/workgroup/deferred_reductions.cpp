#include "compiler/workgroup/deferred_reductions.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/analysis/loop_iteration.h"
#include "compiler/codegen/lane_reductions.h"
#include "compiler/ir/remarks.h"

namespace kiln {
namespace {

using namespace llvm;

class DeferredReductions {
 public:
  DeferredReductions(Function& function, FunctionAnalysisManager& analyses, const VectorIsa& vector_isa)
      : function_(function),
        isa_(vector_isa),
        loops_(analyses.getResult<LoopAnalysis>(function)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(function)),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(function)),
        aliases_(analyses.getResult<AAManager>(function)) {}

  bool run() {
    bool has_changed = false;
    for (Loop* loop : loops_) has_changed |= run(*loop);
    return has_changed;
  }

 private:
  struct Sum {
    StoreInst* store;
    ExtractElementInst* element;
    LaneSum lanes;
  };

  bool run(Loop& loop) {
    unsigned count = evolution_.getSmallConstantTripCount(&loop);
    BasicBlock* exit = loop.getUniqueExitBlock();
    if (count < 2 || count > kMostSimdgroups) return fail(loop, "the loop is not known to run 2 to 32 times");
    PHINode* counter = number_of(loop, evolution_);
    if (!exit || exit->getSinglePredecessor() != loop.getLoopLatch() || !counter)
      return fail(loop, "the loop does not count simdgroups, or is left early");
    SmallVector<Sum> sums;
    for (BasicBlock* block : loop.blocks()) {
      if (!dominators_.dominates(block, loop.getLoopLatch())) {
        note_sums(*block, "only some simdgroups store it");
        continue;
      }
      for (Instruction& instruction : *block)
        if (auto* store = dyn_cast<StoreInst>(&instruction))
          if (std::optional<Sum> sum = sum_of(*store, loop, *counter)) sums.push_back(*sum);
    }
    if (sums.empty()) return false;
    for (Sum& sum : sums) emit_after_loop(sum, loop, *counter, count, *exit);
    return true;
  }

  bool fail(const Loop& loop, const char* why) {
    for (BasicBlock* block : loop.blocks()) note_sums(*block, why);
    return false;
  }

  // A remark on each sum of lanes that the block stores.
  void note_sums(BasicBlock& block, const char* why) const {
    if (!keeps_remarks(function_)) return;
    for (Instruction& instruction : block)
      if (auto* store = dyn_cast<StoreInst>(&instruction))
        if (auto* element = dyn_cast<ExtractElementInst>(store->getValueOperand()); element && lane_sum(*element, isa_))
          note(*store, why);
  }

  static void note(const StoreInst& store, const char* why) {
    remark("deferred-reductions", store, "this sum is made in the loop: ", why);
  }

  // If the loop does not access the stored address otherwise.
  std::optional<Sum> sum_of(StoreInst& store, const Loop& loop, PHINode& counter) {
    auto* element = dyn_cast<ExtractElementInst>(store.getValueOperand());
    if (!store.isSimple() || !element || !element->hasOneUse() || !loop.contains(element)) return std::nullopt;
    std::optional<LaneSum> lanes = lane_sum(*element, isa_);
    if (!lanes) return std::nullopt;
    if (!LoopIteration(loop, counter, 0).can_be_computed(store.getPointerOperand())) {
      note(store, "the address that it is stored to cannot be computed after the loop");
      return std::nullopt;
    }
    if (has_other_access(loop, store, aliases_)) {
      note(store, "the loop may access what it is stored to");
      return std::nullopt;
    }
    return Sum{&store, element, *lanes};
  }

  void emit_after_loop(Sum& sum, const Loop& loop, PHINode& counter, unsigned count, BasicBlock& exit) {
    IRBuilder<> builder(&*function_.getEntryBlock().getFirstInsertionPt());
    auto* type = FixedVectorType::get(sum.lanes.lanes->getType()->getScalarType(), isa_.num_words());
    const Align alignment(isa_.register_bytes);
    AllocaInst* memory = builder.CreateAlloca(ArrayType::get(type, count));
    memory->setAlignment(alignment);
    auto slot = [&](Value* index) { return builder.CreateInBoundsGEP(type, memory, index); };

    builder.SetInsertPoint(sum.element);
    PartialSum partial_sum = reduce_to_register(sum.lanes, isa_, builder);
    builder.CreateAlignedStore(partial_sum.numbers, slot(&counter), alignment);

    builder.SetInsertPoint(exit.getFirstInsertionPt());
    SmallVector<Value*> sums;
    for (unsigned first = 0; first < count; first += kMostReductionsTogether) {
      SmallVector<PartialSum> batch;
      for (unsigned i = first; i < std::min(count, first + kMostReductionsTogether); ++i)
        batch.push_back({builder.CreateAlignedLoad(type, slot(builder.getInt32(i)), alignment), partial_sum.elements});
      append_range(sums, reduce_together(batch, sum.lanes.operation, builder));
    }
    for (unsigned i = 0; i < count; ++i) {
      Value* address = LoopIteration(loop, counter, i).computed(sum.store->getPointerOperand(), builder);
      auto* store = cast<StoreInst>(sum.store->clone());
      store->setOperand(0, builder.CreateBitCast(sums[i], sum.element->getType()));
      store->setOperand(1, address);
      builder.Insert(store);
    }
    sum.store->eraseFromParent();
  }

  Function& function_;
  const VectorIsa& isa_;
  LoopInfo& loops_;
  ScalarEvolution& evolution_;
  DominatorTree& dominators_;
  AAResults& aliases_;
};

}  // namespace

bool defer_reductions(Function& function, FunctionAnalysisManager& analyses, const VectorIsa& vector_isa) {
  return DeferredReductions(function, analyses, vector_isa).run();
}

}  // namespace kiln
