#include "compiler/vectorize/reload_inputs.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include "compiler/analysis/divergence.h"
#include "compiler/ir/rematerialize.h"
#include "compiler/ir/simdgroup.h"

namespace kiln {
namespace {

using namespace llvm;

class InputRematerialization {
 public:
  InputRematerialization(Function& function, FunctionAnalysisManager& analyses,
                         function_ref<bool(const Instruction&)> is_barrier)
      : divergence_(analyses.getResult<DivergenceAnalysis>(function)),
        loops_(analyses.getResult<LoopAnalysis>(function)) {
    for (Instruction& instruction : instructions(function)) {
      if (is_barrier(instruction)) barriers_[instruction.getParent()].push_back(&instruction);
      auto* load = dyn_cast<LoadInst>(&instruction);
      if (load && load->hasMetadata(LLVMContext::MD_invariant_load) && divergence_.is_divergent(load))
        loads_.push_back(load);
    }
  }

  bool run() {
    if (barriers_.empty()) return false;
    bool changed = false;
    for (LoadInst* load : loads_) changed |= rematerialize_after_barriers(*load);
    return changed;
  }

 private:
  bool is_available(const Use& operand) const {
    return is_lane(operand.get()) || !divergence_.is_divergent_at(operand);
  }

  // Whether the address depends on other loaded values.
  bool is_gather(const Value* address) const {
    const auto* instruction = dyn_cast<Instruction>(address);
    if (!instruction || !divergence_.is_divergent(instruction) || is_lane(instruction)) return false;
    return isa<LoadInst>(instruction) || isa<PHINode>(instruction) ||
           any_of(instruction->operands(), [&](const Use& operand) { return is_gather(operand.get()); });
  }

  // The last barrier in the block before `end`, or null.
  Instruction* last_barrier(BasicBlock& block, const Instruction* end) const {
    auto found = barriers_.find(&block);
    if (found == barriers_.end()) return nullptr;
    for (Instruction* barrier : reverse(found->second))
      if (!end || barrier->comesBefore(end)) return barrier;
    return nullptr;
  }

  // Whether a path from the load to its user passes a barrier.
  bool has_barrier_between(LoadInst& load, Instruction& user) const {
    BasicBlock* load_block = load.getParent();
    Instruction* last = last_barrier(*user.getParent(), &user);
    if (user.getParent() == load_block) return last && load.comesBefore(last);
    if (last) return true;
    SmallPtrSet<BasicBlock*, 16> visited;
    SmallVector<BasicBlock*> worklist(predecessors(user.getParent()));
    while (!worklist.empty()) {
      BasicBlock* block = worklist.pop_back_val();
      if (!visited.insert(block).second) continue;
      Instruction* barrier = last_barrier(*block, nullptr);
      if (barrier && (block != load_block || load.comesBefore(barrier))) return true;
      if (block != load_block) append_range(worklist, predecessors(block));
    }
    return false;
  }

  bool rematerialize_after_barriers(LoadInst& load) {
    DenseMap<Instruction*, Value*> copies;  // by insertion point: after the barrier, or at the start of the block
    SmallVector<std::pair<Use*, Value*>> replacements;
    auto available = [&](const Use& operand) { return is_available(operand); };
    for (Use& use : load.uses()) {
      auto* user = cast<Instruction>(use.getUser());
      BasicBlock* block = user->getParent();
      if (isa<PHINode>(user) || loops_.getLoopFor(block) != loops_.getLoopFor(load.getParent()) ||
          !has_barrier_between(load, *user))
        continue;
      if (copies.empty() && (is_gather(load.getPointerOperand()) || !can_be_rematerialized(load, available)))
        return false;
      Instruction* barrier = last_barrier(*block, user);
      Instruction* insertion_point = barrier ? barrier->getNextNode() : &*block->getFirstInsertionPt();
      Value*& copy = copies[insertion_point];
      if (!copy) {
        IRBuilder<> builder(insertion_point);
        copy = rematerialize(load, available, builder);
      }
      replacements.push_back({&use, copy});
    }
    for (auto [use, copy] : replacements) use->set(copy);
    return !replacements.empty();
  }

  const Divergence& divergence_;
  LoopInfo& loops_;
  DenseMap<const BasicBlock*, SmallVector<Instruction*>> barriers_;
  SmallVector<LoadInst*> loads_;
};

}  // namespace

bool reload_inputs(Function& function, FunctionAnalysisManager& analyses,
                   function_ref<bool(const Instruction&)> is_barrier) {
  return InputRematerialization(function, analyses, is_barrier).run();
}

}  // namespace kiln
