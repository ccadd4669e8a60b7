#include "compiler/vectorize/rolled_loops.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include "compiler/analysis/counter_values.h"
#include "compiler/ir/loop_metadata.h"
#include "compiler/ir/remarks.h"

namespace kiln {

using namespace llvm;

namespace {

constexpr const char* kRolledLoopsPass = "rolled-loops";

// Instructions of a loop, times its trips, up to which it may be unrolled all the same.
constexpr uint64_t kShort = 128;

class RolledLoops {
 public:
  RolledLoops(Function& function, FunctionAnalysisManager& analyses)
      : function_(function),
        loops_(analyses.getResult<LoopAnalysis>(function)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(function)) {}

  bool mark() {
    if (loops_.empty()) return false;
    for (Instruction& instruction : instructions(function_))
      if (auto* array = dyn_cast<AllocaInst>(&instruction)) add(*array);
    bool has_marked = false;
    for (Loop* loop : loops_.getLoopsInPreorder()) {
      if (!walking_.contains(loop) || needed_.contains(loop) || length_of(*loop) <= kShort) continue;
      auto* back = loop->getLoopLatch() ? dyn_cast<BranchInst>(loop->getLoopLatch()->getTerminator()) : nullptr;
      if (!back || hasUnrollTransformation(loop) != TM_Unspecified) continue;
      keep_rolled(*back);
      remark(kRolledLoopsPass, *back, "the loop is not unrolled: a private array in it stays in memory");
      has_marked = true;
    }
    return has_marked;
  }

 private:
  // Files the loops around accesses of the array.
  void add(AllocaInst& array) {
    LoopSet unrolled;
    SmallPtrSet<const Loop*, 8> around;
    bool stays = false;
    SmallVector<Instruction*> addresses{&array};
    while (!addresses.empty()) {
      Instruction* followed = addresses.pop_back_val();
      for (User* user : followed->users()) {
        auto* instruction = cast<Instruction>(user);
        if (auto* address = dyn_cast<GetElementPtrInst>(instruction)) {
          if (!address->hasAllConstantIndices()) {
            for (const Loop* loop = loops_.getLoopFor(address->getParent()); loop; loop = loop->getParentLoop())
              around.insert(loop);
            stays |=
                !all_of(address->indices(), [&](Value* index) { return becomes_constant(index, loops_, unrolled); });
          }
          addresses.push_back(address);
        } else if (isa<SelectInst>(instruction)) {
          addresses.push_back(instruction);  // a guard
        } else if (const auto* store = dyn_cast<StoreInst>(instruction)) {
          stays |= store->getValueOperand() == followed;
        } else if (isa<PHINode>(instruction)) {
          return;  // a pointer that walks, which unrolling makes an index
        } else {
          stays |= !isa<LoadInst, IntrinsicInst>(instruction);
        }
      }
    }
    if (around.empty()) return;
    stays |= any_of(unrolled, [&](Loop* loop) { return !has_known_length(*loop); });
    if (stays)
      walking_.insert(around.begin(), around.end());
    else
      needed_.insert(unrolled.begin(), unrolled.end());
  }

  // Once the loops around it are unrolled.
  bool has_known_length(Loop& loop) {
    if (constant_trips(loop, evolution_) != 0) return true;
    const BasicBlock* exiting = loop.getExitingBlock();
    const auto* branch = exiting ? dyn_cast<BranchInst>(exiting->getTerminator()) : nullptr;
    LoopSet unrolled;
    return branch && branch->isConditional() && becomes_constant(branch->getCondition(), loops_, unrolled);
  }

  // After unrolling; loops in it whose length is not known count once.
  uint64_t length_of(Loop& loop) {
    uint64_t length = 0;
    for (const BasicBlock* block : loop.blocks())
      if (loops_.getLoopFor(block) == &loop) length += block->size();
    for (Loop* inner : loop) length += length_of(*inner);
    return length * std::max<uint64_t>(1, constant_trips(loop, evolution_));
  }

  Function& function_;
  LoopInfo& loops_;
  ScalarEvolution& evolution_;
  SmallPtrSet<const Loop*, 8> walking_;  // those with variable accesses of arrays that stay in memory
  SmallPtrSet<const Loop*, 8> needed_;   // those that must be unrolled so that an array becomes registers
};

}  // namespace

bool keep_loops_rolled(Function& function, FunctionAnalysisManager& analyses) {
  return RolledLoops(function, analyses).mark();
}

}  // namespace kiln
