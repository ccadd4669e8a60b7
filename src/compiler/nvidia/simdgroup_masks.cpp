#include "compiler/nvidia/simdgroup_masks.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <optional>
#include <utility>

#include "compiler/nvidia/kernel_entry.h"
#include "compiler/passes/barrier_agreement.h"
#include "compiler/passes/copy_behind.h"
#include "compiler/passes/divergence.h"
#include "compiler/passes/lane_exchanges.h"
#include "compiler/passes/separate_lanes.h"
#include "compiler/passes/stand_ins.h"
#include "compiler/passes/structured_flow.h"
#include "compiler/passes/uniformity.h"

namespace kiln {
namespace {

using namespace llvm;

// A branch of two ways of which one leads to no site any more: whether it is the first.
std::optional<unsigned> way_on(const BasicBlock& block, const Blocks& leading) {
  const auto* branch = dyn_cast<BranchInst>(block.getTerminator());
  if (!branch || !branch->isConditional()) return std::nullopt;
  bool first = leading.contains(branch->getSuccessor(0)), second = leading.contains(branch->getSuccessor(1));
  if (first == second) return std::nullopt;
  return first ? 0 : 1;
}

Value* vote(IRBuilder<>& builder, Value* mask, Value* condition) {
  return builder.CreateIntrinsic(Intrinsic::nvvm_vote_ballot_sync, {}, {mask, condition});
}

// The condition under which a thread takes the branch's n-th way.
Value* taken(IRBuilder<>& builder, const BranchInst& branch, unsigned way) {
  return way == 0 ? branch.getCondition() : builder.CreateNot(branch.getCondition());
}

CallInst* launched(Function& body) {
  IRBuilder<> builder(&*body.getEntryBlock().getFirstInsertionPt());
  Function& function = stand_in(*body.getParent(), kLaunchedFunction, FunctionType::get(builder.getInt32Ty(), false));
  only_compute(function);
  return builder.CreateCall(&function);
}

class MaskFinder {
 public:
  MaskFinder(Function& body, ArrayRef<ExchangeSite> sites) : body_(body), sites_(sites) {}

  Masks run() {
    mark_uniform_results();
    analyses_.run("sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,lower-switch", body_);
    separate_lanes(body_);
    analyses_.forget(body_);
    leave_before_barriers();
    exchanges_ = blocks_with(body_, [&](const Instruction& instruction) { return is_exchange(instruction); });
    leading_ = leading_to(exchanges_);
    Masks masks;
    masks.barriers_agree = barriers_agree(body_, analyses_.functions(), barriers());
    if (lingers_) masks.barriers_agree = false;
    if (leading_.empty()) return masks;
    if (come_together()) {
      launched_ = launched(body_);
      vote_at_leavings();
    } else {
      masks.refusal = structure();
    }
    if (!masks.refusal.empty()) return masks;
    for (Instruction& instruction : instructions(body_))
      if (is_exchange(instruction)) masks.at[cast<CallInst>(&instruction)] = mask_at(instruction);
    return masks;
  }

 private:
  bool is_exchange(const Instruction& instruction) const {
    std::optional<unsigned> site = waits_at(instruction);
    return site && !sites_[*site].is_barrier;
  }

  // Of what is exchanged, reductions over the simdgroup and ballots give the same to all.
  void mark_uniform_results() {
    for (Instruction& instruction : instructions(body_)) {
      std::optional<unsigned> number = waits_at(instruction);
      if (!number) continue;
      const ExchangeSite& site = sites_[*number];
      if (site.exchange == CpuExchange::kBallot || (site.exchange == CpuExchange::kReduce && site.width == 32))
        mark_same_in_all_lanes(instruction);
    }
  }

  // ---- Barriers

  Blocks barriers() {
    return blocks_with(body_, [&](const Instruction& instruction) {
      std::optional<unsigned> site = waits_at(instruction);
      return site && sites_[*site].is_barrier;
    });
  }

  void leave_before_barriers() {
    Blocks leading = leading_to(barriers());
    if (leading.empty()) return;
    auto& divergence = analyses_.functions().getResult<DivergenceAnalysis>(body_);
    auto& dominators = analyses_.functions().getResult<DominatorTreeAnalysis>(body_);
    SmallVector<std::pair<BasicBlock*, unsigned>> forks;
    for (BasicBlock& block : body_) {
      std::optional<unsigned> way = way_on(block, leading);
      if (way && divergence.is_divergent_branch(block)) forks.push_back({&block, *way});
    }
    // The branch is a loop's end where its other way leads back.
    SmallVector<bool> are_ends;
    for (auto [block, way] : forks)
      are_ends.push_back(dominators.dominates(block->getTerminator()->getSuccessor(way), block));
    auto& loops = analyses_.functions().getResult<LoopAnalysis>(body_);
    Blocks in_loops;
    for (const BasicBlock& block : body_)
      if (loops.getLoopFor(&block)) in_loops.insert(&block);
    for (auto [fork, is_end] : zip(forks, are_ends)) leave(*fork.first, fork.second, is_end, in_loops);
    if (!forks.empty()) analyses_.forget(body_);
  }

  // The way that leads to no barrier leads to a copy of what was there.
  void leave(BasicBlock& fork, unsigned way, bool is_end, const Blocks& in_loops) {
    auto* branch = cast<BranchInst>(fork.getTerminator());
    BasicBlock* goes_on = branch->getSuccessor(way);
    lingers_ = lingers_ || is_end || any_of(behind(*branch->getSuccessor(1 - way)), [&](const BasicBlock* block) {
                 return in_loops.contains(block);
               });
    for (BasicBlock* copy : copy_behind(*branch, 1 - way)) {
      if (!isa<ReturnInst>(copy->getTerminator())) continue;
      IRBuilder<> builder(copy->getTerminator());
      create_exit(builder);
      if (!is_end) exits_.push_back({copy, goes_on});
    }
    EliminateUnreachableBlocks(body_);
  }

  // In structured control flow there is one return. Nobody comes from an exit to where the others go on, but for the
  // order of blocks it is a side of the branch.
  void join_exits() {
    for (auto [block, goes_on] : exits_) {
      block->getTerminator()->eraseFromParent();
      IRBuilder<>(block).CreateBr(goes_on);
      for (PHINode& phi : goes_on->phis()) phi.addIncoming(Constant::getNullValue(phi.getType()), block);
    }
    if (!exits_.empty()) analyses_.forget(body_);
  }

  // ---- Exchanges to which threads come together

  bool come_together() {
    auto& divergence = analyses_.functions().getResult<DivergenceAnalysis>(body_);
    // Threads that leave are voted out, so those that do not must be there together too.
    Blocks together = exchanges_;
    for (const BasicBlock& block : body_)
      if (way_on(block, leading_)) together.insert(&block);
    if (!barriers_agree(body_, analyses_.functions(), together)) return false;
    for (BasicBlock& block : body_)
      if (way_on(block, leading_) && divergence.is_divergent_branch(block)) leavings_.push_back(&block);
    return true;
  }

  void vote_at_leavings() {
    if (leavings_.empty()) return;
    IRBuilder<> builder(launched_->getNextNode());
    variable_ = IRBuilder<>(&*body_.getEntryBlock().begin()).CreateAlloca(builder.getInt32Ty());
    builder.CreateStore(launched_, variable_);
    for (BasicBlock* block : leavings_) {
      auto* branch = cast<BranchInst>(block->getTerminator());
      builder.SetInsertPoint(branch);
      Value* condition = taken(builder, *branch, *way_on(*block, leading_));
      builder.CreateStore(vote(builder, builder.CreateLoad(builder.getInt32Ty(), variable_), condition), variable_);
    }
  }

  // ---- Others

  std::string structure() {
    join_exits();
    analyses_.run(kStructuring, body_);
    flow_.emplace(body_, analyses_.functions());
    if (std::string reason = flow_->check_structure(body_); !reason.empty()) return reason;
    launched_ = launched(body_);
    loops_ = &analyses_.functions().getResult<LoopAnalysis>(body_);
    dominators_ = &analyses_.functions().getResult<DominatorTreeAnalysis>(body_);
    // In an order in which what a mask is made of is there before.
    ReversePostOrderTraversal<Function*> order(&body_);
    SmallVector<BasicBlock*> blocks(order.begin(), order.end());
    for (BasicBlock* block : blocks)
      if (any_of(*block, [&](const Instruction& i) { return is_exchange(i); })) mask_of(*block);
    while (!open_.empty()) {
      Loop* loop = open_.pop_back_val();
      BasicBlock* latch = loop->getLoopLatch();
      if (mask_of(*latch) != live_[loop]) return "a loop whose end some of its threads do not reach";
      auto* branch = cast<BranchInst>(latch->getTerminator());
      IRBuilder<> builder(branch);
      Value* stays = taken(builder, *branch, branch->getSuccessor(0) == loop->getHeader() ? 0 : 1);
      live_[loop]->addIncoming(vote(builder, live_[loop], stays), latch);
    }
    return "";
  }

  Value* mask_of(BasicBlock& block) {
    if (Value* known = masks_.lookup(&block)) return known;
    Value* mask = find_mask(block);
    masks_[&block] = mask;
    return mask;
  }

  Value* find_mask(BasicBlock& block) {
    if (&block == &body_.getEntryBlock()) return launched_;
    Loop* loop = loops_->getLoopFor(&block);
    if (loop && loop->getHeader() == &block) {
      Value* before = mask_of(*loop->getLoopPreheader());
      if (!flow_->is_divergent_loop(*loop)) return before;
      PHINode* live = PHINode::Create(before->getType(), 2, "live", block.begin());
      live->addIncoming(before, loop->getLoopPreheader());
      live_[loop] = live;
      open_.push_back(loop);
      return live;
    }
    BasicBlock* dominator = dominators_->getNode(&block)->getIDom()->getBlock();
    Loop* left = nullptr;  // the outermost loop that ends before this block
    for (Loop* other = loops_->getLoopFor(dominator); other && !other->contains(&block); other = other->getParentLoop())
      left = other;
    if (left) return mask_of(*left->getLoopPreheader());
    BasicBlock* before = block.getSinglePredecessor();
    if (!before || !flow_->is_divergent_branch(*before)) return mask_of(before ? *before : *dominator);
    Value* mask = mask_of(*before);
    auto* branch = cast<BranchInst>(before->getTerminator());
    IRBuilder<> builder(branch);
    return vote(builder, mask, taken(builder, *branch, branch->getSuccessor(0) == &block ? 0 : 1));
  }

  // ---- Both

  SimdgroupMask mask_at(Instruction& exchange) {
    IRBuilder<> builder(&exchange);
    if (flow_) {
      Value* mask = masks_.at(exchange.getParent());
      return {mask, mask, false};
    }
    if (variable_) {
      Value* mask = builder.CreateLoad(builder.getInt32Ty(), variable_);
      return {mask, mask, false};
    }
    // A constant mask is free. Threads that it names and that are not there have returned, or never were.
    return {builder.getInt32(~0u), launched_, true};
  }

  Function& body_;
  ArrayRef<ExchangeSite> sites_;
  ThreadAnalyses analyses_{Lanes::kApart};
  bool lingers_ = false;  // threads that leave may still be there when the others come to a barrier
  SmallVector<std::pair<BasicBlock*, BasicBlock*>> exits_;  // and where the branch's other way leads
  Blocks exchanges_, leading_;
  AllocaInst* variable_ = nullptr;
  SmallVector<BasicBlock*> leavings_;
  std::optional<StructuredFlow> flow_;
  LoopInfo* loops_ = nullptr;
  DominatorTree* dominators_ = nullptr;
  DenseMap<BasicBlock*, Value*> masks_;
  DenseMap<Loop*, PHINode*> live_;
  SmallVector<Loop*> open_;
  CallInst* launched_ = nullptr;
};

}  // namespace

Masks find_masks(Function& body, ArrayRef<ExchangeSite> sites) { return MaskFinder(body, sites).run(); }

}  // namespace kiln
