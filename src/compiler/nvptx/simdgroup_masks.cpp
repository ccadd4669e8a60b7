#include "compiler/nvptx/simdgroup_masks.h"

#include <llvm/ADT/EquivalenceClasses.h>
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

#include "compiler/analysis/barrier_uniformity.h"
#include "compiler/analysis/divergence.h"
#include "compiler/analysis/structured_flow.h"
#include "compiler/analysis/uniformity.h"
#include "compiler/ir/block_copies.h"
#include "compiler/ir/metadata.h"
#include "compiler/ir/ordering_edges.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/lowering/affine_lanes.h"
#include "compiler/lowering/shared_tails.h"
#include "compiler/nvptx/kernel_entry.h"

namespace kiln {
namespace {

using namespace llvm;

// A branch of two ways of which one leads to no site any more: whether it is the first.
std::optional<unsigned> next_edge(const BasicBlock& block, const Blocks& leading) {
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
  Function& function =
      pseudo_intrinsic(*body.getParent(), kLaunchedFunction, FunctionType::get(builder.getInt32Ty(), false));
  set_no_side_effects(function);
  return builder.CreateCall(&function);
}

class MaskFinder {
 public:
  MaskFinder(Function& body, ArrayRef<ConvergencePoint> sites) : body_(body), sites_(sites) {}

  Masks run() {
    mark_uniform_results();
    analyses_.run("sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,lower-switch", body_);
    split_affine_lanes(body_);
    analyses_.forget(body_);
    leave_before_barriers();
    exchanges_ = blocks_with(body_, [&](const Instruction& instruction) { return is_collective(instruction); });
    leading_ = blocks_reaching(exchanges_);
    Masks masks;
    const bool agree = barriers_are_uniform(body_, analyses_.functions(), barriers());
    masks.barriers_are_uniform = agree && !lingers_;
    if (leading_.empty()) return masks;
    if (come_together()) {
      launched_ = launched(body_);
      vote_at_leavings();
    } else {
      masks.refusal = structure(agree);
    }
    if (!masks.refusal.empty()) return masks;
    for (Instruction& instruction : instructions(body_))
      if (is_collective(instruction)) masks.at[cast<CallInst>(&instruction)] = mask_at(instruction);
    return masks;
  }

 private:
  bool is_collective(const Instruction& instruction) const {
    std::optional<unsigned> site = convergence_point_at(instruction);
    return site && !sites_[*site].is_barrier;
  }

  // Of what is exchanged, reductions over the simdgroup and ballots give the same to all.
  void mark_uniform_results() {
    for (Instruction& instruction : instructions(body_)) {
      std::optional<unsigned> number = convergence_point_at(instruction);
      if (!number) continue;
      const ConvergencePoint& site = sites_[*number];
      if (site.exchange == CpuExchange::kBallot || (site.exchange == CpuExchange::kReduce && site.width == 32))
        mark_uniform(instruction);
    }
  }

  // ---- Barriers

  bool is_barrier(const Instruction& instruction) const {
    std::optional<unsigned> site = convergence_point_at(instruction);
    return site && sites_[*site].is_barrier;
  }

  Blocks barriers() {
    return blocks_with(body_, [&](const Instruction& instruction) { return is_barrier(instruction); });
  }

  bool exchanges(const BasicBlock& block) const {
    return any_of(block, [&](const Instruction& instruction) { return is_collective(instruction); });
  }

  // A branch of which one way leads to no barrier.
  struct Fork {
    BasicBlock* block;
    unsigned next_edge;
    bool is_end;     // of a loop, where its other way leads back
    BlockList left;  // what is behind the way that does not

    BasicBlock* next(unsigned way) const { return block->getTerminator()->getSuccessor(way); }
  };

  void leave_before_barriers() {
    const Blocks leading = blocks_always_reaching(barriers());
    if (leading.empty()) return;
    auto& divergence = analyses_.functions().getResult<DivergenceAnalysis>(body_);
    auto& dominators = analyses_.functions().getResult<DominatorTreeAnalysis>(body_);
    auto& loops = analyses_.functions().getResult<LoopAnalysis>(body_);
    SmallVector<Fork> forks;
    Blocks in_loops;
    for (BasicBlock& block : body_) {
      if (loops.getLoopFor(&block)) in_loops.insert(&block);
      std::optional<unsigned> way = next_edge(block, leading);
      if (!way || !divergence.is_divergent_branch(block)) continue;
      const auto* branch = cast<BranchInst>(block.getTerminator());
      forks.push_back({&block, *way, dominators.dominates(branch->getSuccessor(*way), &block),
                       reachable_from(*branch->getSuccessor(1 - *way))});
    }
    if (forks.empty()) return;
    EquivalenceClasses<const Fork*> groups;
    for (const Fork& fork : forks)
      for (const Fork& other : forks)
        if (&fork == &other || meet(fork, other)) groups.unionSets(&fork, &other);
    for (const Fork& first : forks) {
      if (groups.getLeaderValue(&first) != &first) continue;
      SmallVector<const Fork*> group;
      for (const Fork& fork : forks)
        if (groups.isEquivalent(&first, &fork)) group.push_back(&fork);
      leave(group, in_loops);
    }
    EliminateUnreachableBlocks(body_);
    analyses_.forget(body_);
  }

  // Whether those that leave at one and those that leave at the other may exchange values: not where all that go on
  // wait in between.
  bool meet(const Fork& one, const Fork& other) const {
    auto is_shared = [&](BasicBlock* block) { return other.left.contains(block) && exchanges(*block); };
    if (none_of(one.left, is_shared)) return false;
    auto leads = [&](const Fork& from, const Fork& to, bool may_wait) {
      auto passes = [&](BasicBlock& block) {
        return may_wait || none_of(block, [&](const Instruction& i) { return is_barrier(i); });
      };
      return reachable_from(*from.next(from.next_edge), passes).contains(to.block);
    };
    if (leads(one, other, false) || leads(other, one, false)) return true;
    return !leads(one, other, true) && !leads(other, one, true);
  }

  // The ways that lead to no barrier lead to a copy of what was there, one for all forks.
  void leave(ArrayRef<const Fork*> forks, const Blocks& in_loops) {
    SmallVector<Way> ways;
    BlockList left;
    bool is_end = false, is_in_loop = false;
    for (const Fork* fork : forks) {
      ways.push_back({fork->block, fork->next(1 - fork->next_edge)});
      left.insert(fork->left.begin(), fork->left.end());
      is_end = is_end || fork->is_end;
      is_in_loop = is_in_loop || in_loops.contains(fork->block);
    }
    const bool exchange = any_of(left, [&](BasicBlock* block) { return exchanges(*block); });
    lingers_ = lingers_ || is_end || any_of(left, [&](BasicBlock* block) { return in_loops.contains(block); });
    const bool is_alone = forks.size() == 1 && !(exchange && is_in_loop);
    BasicBlock* goes_on = forks[0]->next(forks[0]->next_edge);
    for (BasicBlock* copy : copy_for(ways, left)) {
      if (!isa<ReturnInst>(copy->getTerminator())) continue;
      IRBuilder<> builder(copy->getTerminator());
      create_exit(builder);
      if (is_alone && !is_end) exits_.push_back({copy, goes_on});
    }
    if (is_alone) return;
    for (const Fork* fork : forks)
      tails_.push_back({cast<BranchInst>(fork->block->getTerminator()), 1 - fork->next_edge});
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

  // The same for what forks share, and for what is exchanged on the way out of a loop. Returns whether it can be done.
  bool linearize_shared_tails() {
    if (tails_.empty()) return true;
    const Blocks waits = barriers();
    size_t none = 0;
    for (auto [branch, way] : tails_)
      if (!put_tail_first(*branch, way, waits, none, [](BasicBlock&, const Instruction&) { return true; }))
        return false;
    define_uses(body_);
    analyses_.forget(body_);
    return true;
  }

  // ---- Exchanges to which threads come together

  bool come_together() {
    auto& divergence = analyses_.functions().getResult<DivergenceAnalysis>(body_);
    // Threads that leave are voted out, so those that do not must be there together too.
    Blocks together = exchanges_;
    for (const BasicBlock& block : body_)
      if (next_edge(block, leading_)) together.insert(&block);
    if (!barriers_are_uniform(body_, analyses_.functions(), together)) return false;
    for (BasicBlock& block : body_)
      if (next_edge(block, leading_) && divergence.is_divergent_branch(block)) leavings_.push_back(&block);
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
      Value* condition = taken(builder, *branch, *next_edge(*block, leading_));
      builder.CreateStore(vote(builder, builder.CreateLoad(builder.getInt32Ty(), variable_), condition), variable_);
    }
  }

  // ---- Others

  std::string structure(bool agree) {
    join_exits();
    if (!linearize_shared_tails())
      return "threads that return exchange values where others would wait for them at a barrier";
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
      if (any_of(*block, [&](const Instruction& i) { return is_collective(i); })) mask_of(*block);
    const Blocks waits = barriers();
    while (!open_.empty()) {
      Loop* loop = open_.pop_back_val();
      // Who leaves would wait at its end for who waits in it for all others.
      if (!agree && any_of(loop->blocks(), [&](BasicBlock* block) { return waits.contains(block); }))
        return "they may leave a loop with a threadgroup_barrier and come to one again";
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
  ArrayRef<ConvergencePoint> sites_;
  ThreadAnalyses analyses_{Lanes::kIndependent};
  bool lingers_ = false;  // threads that leave may still be there when the others come to a barrier
  SmallVector<std::pair<BasicBlock*, BasicBlock*>> exits_;  // and where the branch's other way leads
  SmallVector<std::pair<BranchInst*, unsigned>> tails_;     // and the way that leads to them
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

Masks find_masks(Function& body, ArrayRef<ConvergencePoint> sites) { return MaskFinder(body, sites).run(); }

}  // namespace kiln
