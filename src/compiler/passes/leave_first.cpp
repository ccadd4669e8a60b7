#include "compiler/passes/leave_first.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "compiler/passes/copy_behind.h"
#include "compiler/passes/divergence.h"
#include "compiler/passes/exchange_sites.h"

namespace kiln {

using namespace llvm;

namespace {

// Instructions of all copies.
constexpr size_t kMostCopied = 4000;

// Where others may read it.
bool writes(const Instruction& instruction) {
  if (!instruction.mayWriteToMemory()) return false;
  const Value* to = nullptr;
  if (const auto* store = dyn_cast<StoreInst>(&instruction)) to = store->getPointerOperand();
  if (const auto* call = dyn_cast<CallBase>(&instruction)) {
    if (call->onlyAccessesInaccessibleMemory()) return false;
    if (const auto* intrinsic = dyn_cast<IntrinsicInst>(call); intrinsic && intrinsic->isAssumeLikeIntrinsic())
      return false;
    if (const auto* memory = dyn_cast<MemIntrinsic>(call)) to = memory->getDest();
  }
  return !to || !isa<AllocaInst>(getUnderlyingObject(to, /*MaxLookup=*/0));
}

bool write(const BlockList& blocks) {
  return any_of(blocks, [](const BasicBlock* block) { return any_of(*block, writes); });
}

// Whether threads do something together there.
bool exchange(const BlockList& blocks) {
  auto is_together = [](const Instruction& instruction) {
    const auto* call = dyn_cast<CallInst>(&instruction);
    return call && call->isConvergent();
  };
  return any_of(blocks, [&](const BasicBlock* block) { return any_of(*block, is_together); });
}

// From the block's end one might go on instead.
void lead_to(BasicBlock& goes_on, BasicBlock& block) {
  Instruction* branch = block.getTerminator();
  BasicBlock* rest = SplitBlock(&block, branch);
  block.getTerminator()->eraseFromParent();
  IRBuilder<> builder(&block);
  builder.CreateCondBr(builder.CreateCall(&never_function(*block.getModule())), &goes_on, rest);
}

class LeaveFirst {
 public:
  LeaveFirst(Function& function, FunctionAnalysisManager& analyses, const Blocks& waits)
      : function_(function),
        waits_(waits),
        leading_(leading_to(waits)),
        for_good_(leading_for_good(waits)),
        divergence_(analyses.getResult<DivergenceAnalysis>(function)),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(function)),
        loops_(analyses.getResult<LoopAnalysis>(function)) {}

  Leavings run() {
    if (leading_.empty()) return Leavings::kNone;
    for (BasicBlock& block : function_)
      if (!find(block)) return Leavings::kTooLate;
    if (found_.empty()) return Leavings::kNone;
    for (const Leaving& leaving : found_) order(leaving);
    EliminateUnreachableBlocks(function_);
    return Leavings::kFirst;
  }

 private:
  struct Leaving {
    BranchInst* branch;
    unsigned way;
    bool shares;    // blocks that write, with others
    BlockList own;  // what is behind the way and nothing else leads to
  };

  // Whether some may take one of the block's ways while others go on.
  bool parts(const BasicBlock& block) {
    if (divergence_.is_divergent_branch(block) || !for_good_.contains(&block)) return true;
    if (!apart_) apart_ = blocks_apart(loops_, divergence_, waits_);
    return apart_->contains(&block);
  }

  // Returns whether what leaves there can be put first.
  bool find(BasicBlock& block) {
    auto* branch = dyn_cast<BranchInst>(block.getTerminator());
    if (!branch || !branch->isConditional()) return true;
    if (!never_goes_back(block) && !goes_back_in_time(block, *branch)) return false;
    const bool is_second = leading_.contains(branch->getSuccessor(0));
    if (is_second == leading_.contains(branch->getSuccessor(1))) return true;
    const unsigned way = is_second ? 1 : 0;
    BasicBlock* leaves = branch->getSuccessor(way);
    const BlockList all = behind(*leaves);
    if (!write(all) || !parts(block)) return true;
    const BasicBlockEdge edge(&block, leaves);
    BlockList own, shared;
    for (BasicBlock* one : all) (dominators_.dominates(edge, one) ? own : shared).insert(one);
    if (exchange(own) && leaves_loop(block, *leaves)) return false;
    const bool shares = write(shared);
    if (shares) {
      for (const BasicBlock* one : all) copied_ += one->size();
      if (exchange(shared) || copied_ > kMostCopied) return false;
    }
    found_.push_back({branch, way, shares, std::move(own)});
    return true;
  }

  // Where those that leave exchange values in an iteration of a loop, a way back that nobody takes leads to the loop's
  // header. So they come before what is behind the loop, but not before what is in it.
  bool goes_back_in_time(const BasicBlock& block, const BranchInst& branch) {
    const bool is_second = for_good_.contains(branch.getSuccessor(0));
    if (is_second == for_good_.contains(branch.getSuccessor(1))) return true;
    BasicBlock* leaves = branch.getSuccessor(is_second ? 1 : 0);
    if (!leading_.contains(leaves)) return true;
    BlockList all;
    all.insert(leaves);
    bool waits = false;
    for (unsigned i = 0; i < all.size(); ++i)
      for (BasicBlock* next : successors(all[i])) {
        if (!for_good_.contains(next)) {
          all.insert(next);
          continue;
        }
        const Loop* loop = loops_.getLoopFor(next);
        waits = waits || any_of(waits_, [&](const BasicBlock* wait) { return !loop || loop->contains(wait); });
      }
    return !waits || !write(all) || !parts(block);
  }

  // Those that leave in different iterations meet behind the loop.
  bool leaves_loop(const BasicBlock& from, const BasicBlock& to) const {
    const Loop* loop = loops_.getLoopFor(&from);
    return loop && !loop->contains(&to);
  }

  void order(const Leaving& leaving) {
    BasicBlock* goes_on = leaving.branch->getSuccessor(1 - leaving.way);
    if (goes_on->getSinglePredecessor()) FoldSingleEntryPHINodes(goes_on);
    goes_on = SplitEdge(leaving.branch->getParent(), goes_on);
    const BlockList own = leaving.shares ? copy_behind(*leaving.branch, leaving.way) : leaving.own;
    SmallVector<BasicBlock*> ends;
    for (BasicBlock* block : own) {
      if (isa<ReturnInst>(block->getTerminator())) ends.push_back(block);
      for (BasicBlock* next : SmallVector<BasicBlock*>(successors(block)))
        if (!own.contains(next)) ends.push_back(SplitEdge(block, next));
    }
    for (BasicBlock* end : ends) lead_to(*goes_on, *end);
  }

  Function& function_;
  const Blocks& waits_;
  const Blocks leading_, for_good_;
  const Divergence& divergence_;
  const DominatorTree& dominators_;
  const LoopInfo& loops_;
  std::optional<Blocks> apart_;  // where it is asked for
  SmallVector<Leaving> found_;
  size_t copied_ = 0;
};

}  // namespace

Leavings leave_first(Function& function, FunctionAnalysisManager& analyses, const Blocks& waits) {
  return LeaveFirst(function, analyses, waits).run();
}

}  // namespace kiln
