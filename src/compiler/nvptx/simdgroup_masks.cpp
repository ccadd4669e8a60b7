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

// The edge of a branch that leads to a convergence point, if the other one does not.
std::optional<unsigned> reaching_edge(const BasicBlock& block, const Blocks& reaching) {
  const auto* branch = dyn_cast<BranchInst>(block.getTerminator());
  if (!branch || !branch->isConditional()) return std::nullopt;
  bool first = reaching.contains(branch->getSuccessor(0)), second = reaching.contains(branch->getSuccessor(1));
  if (first == second) return std::nullopt;
  return first ? 0 : 1;
}

Value* vote(IRBuilder<>& builder, Value* mask, Value* condition) {
  return builder.CreateIntrinsic(Intrinsic::nvvm_vote_ballot_sync, {}, {mask, condition});
}

// The condition under which a thread takes the branch's n-th edge.
Value* edge_condition(IRBuilder<>& builder, const BranchInst& branch, unsigned edge) {
  return edge == 0 ? branch.getCondition() : builder.CreateNot(branch.getCondition());
}

CallInst* launched(Function& body) {
  IRBuilder<> builder(&*body.getEntryBlock().getFirstInsertionPt());
  Function& function =
      pseudo_intrinsic(*body.getParent(), kLaunchedFunction, FunctionType::get(builder.getInt32Ty(), false));
  return builder.CreateCall(&function);
}

class MaskFinder {
 public:
  MaskFinder(Function& body, ArrayRef<ConvergencePoint> points) : body_(body), points_(points) {}

  Masks run() {
    mark_uniform_results();
    analyses_.run("sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,lower-switch", body_);
    split_affine_lanes(body_);
    analyses_.invalidate(body_);
    exit_before_barriers();
    collective_blocks_ = blocks_with(body_, [&](const Instruction& instruction) { return is_collective(instruction); });
    reaching_ = blocks_reaching(collective_blocks_);
    Masks masks;
    const bool are_uniform = barriers_are_uniform(body_, analyses_.functions(), barriers());
    masks.barriers_are_uniform = are_uniform && !lingers_;
    if (reaching_.empty()) return masks;
    if (threads_converge()) {
      launched_ = launched(body_);
      vote_at_leaving_blocks();
    } else {
      masks.refusal = structure(are_uniform);
    }
    if (!masks.refusal.empty()) return masks;
    for (Instruction& instruction : instructions(body_))
      if (is_collective(instruction)) masks.at[cast<CallInst>(&instruction)] = mask_at(instruction);
    return masks;
  }

 private:
  bool is_collective(const Instruction& instruction) const {
    std::optional<unsigned> point = convergence_point_at(instruction);
    return point && !points_[*point].is_barrier;
  }

  // Ballots, and reductions over the whole simdgroup, have uniform results.
  void mark_uniform_results() {
    for (Instruction& instruction : instructions(body_)) {
      std::optional<unsigned> number = convergence_point_at(instruction);
      if (!number) continue;
      const ConvergencePoint& point = points_[*number];
      if (point.exchange == CpuExchange::kBallot || (point.exchange == CpuExchange::kReduce && point.width == 32))
        mark_uniform(instruction);
    }
  }

  // ---- Barriers

  bool is_barrier(const Instruction& instruction) const {
    std::optional<unsigned> point = convergence_point_at(instruction);
    return point && points_[*point].is_barrier;
  }

  Blocks barriers() {
    return blocks_with(body_, [&](const Instruction& instruction) { return is_barrier(instruction); });
  }

  bool has_collective(const BasicBlock& block) const {
    return any_of(block, [&](const Instruction& instruction) { return is_collective(instruction); });
  }

  // A branch with one edge that leads to no barrier.
  struct LeavingBranch {
    BasicBlock* block;
    unsigned reaching_edge;
    bool is_latch;   // whether reaching_edge is a loop's back edge
    BlockList left;  // the blocks reachable by the other edge

    BasicBlock* successor(unsigned edge) const { return block->getTerminator()->getSuccessor(edge); }
  };

  void exit_before_barriers() {
    const Blocks reaching = blocks_reaching_by_real_edges(barriers());
    if (reaching.empty()) return;
    auto& divergence = analyses_.functions().getResult<DivergenceAnalysis>(body_);
    auto& dominators = analyses_.functions().getResult<DominatorTreeAnalysis>(body_);
    auto& loops = analyses_.functions().getResult<LoopAnalysis>(body_);
    SmallVector<LeavingBranch> branches;
    Blocks in_loops;
    for (BasicBlock& block : body_) {
      if (loops.getLoopFor(&block)) in_loops.insert(&block);
      std::optional<unsigned> edge = reaching_edge(block, reaching);
      if (!edge || !divergence.is_divergent_branch(block)) continue;
      const auto* branch = cast<BranchInst>(block.getTerminator());
      branches.push_back({&block, *edge, dominators.dominates(branch->getSuccessor(*edge), &block),
                          reachable_from(*branch->getSuccessor(1 - *edge))});
    }
    if (branches.empty()) return;
    EquivalenceClasses<const LeavingBranch*> groups;
    for (const LeavingBranch& branch : branches)
      for (const LeavingBranch& other : branches)
        if (&branch == &other || may_share_collective(branch, other)) groups.unionSets(&branch, &other);
    for (const LeavingBranch& first : branches) {
      if (groups.getLeaderValue(&first) != &first) continue;
      SmallVector<const LeavingBranch*> group;
      for (const LeavingBranch& branch : branches)
        if (groups.isEquivalent(&first, &branch)) group.push_back(&branch);
      exit_through_copy(group, in_loops);
    }
    EliminateUnreachableBlocks(body_);
    analyses_.invalidate(body_);
  }

  // Whether threads that leave at one branch and threads that leave at the other may execute a collective together.
  // They do not if all threads that go on wait at a barrier in between.
  bool may_share_collective(const LeavingBranch& one, const LeavingBranch& other) const {
    auto is_shared = [&](BasicBlock* block) { return other.left.contains(block) && has_collective(*block); };
    if (none_of(one.left, is_shared)) return false;
    auto leads = [&](const LeavingBranch& from, const LeavingBranch& to, bool may_wait) {
      auto passes = [&](BasicBlock& block) {
        return may_wait || none_of(block, [&](const Instruction& i) { return is_barrier(i); });
      };
      return reachable_from(*from.successor(from.reaching_edge), passes).contains(to.block);
    };
    if (leads(one, other, false) || leads(other, one, false)) return true;
    return !leads(one, other, true) && !leads(other, one, true);
  }

  // Redirects the edges that lead to no barrier to a copy of the code there, one for all branches.
  void exit_through_copy(ArrayRef<const LeavingBranch*> branches, const Blocks& in_loops) {
    SmallVector<Way> edges;
    BlockList left;
    bool is_latch = false, is_in_loop = false;
    for (const LeavingBranch* branch : branches) {
      edges.push_back({branch->block, branch->successor(1 - branch->reaching_edge)});
      left.insert(branch->left.begin(), branch->left.end());
      is_latch = is_latch || branch->is_latch;
      is_in_loop = is_in_loop || in_loops.contains(branch->block);
    }
    const bool has_collectives = any_of(left, [&](BasicBlock* block) { return has_collective(*block); });
    // ptxas predicates a short path to an exit, and may place it after the barrier.
    auto lingers = [&](const BasicBlock* block) {
      return in_loops.contains(block) || any_of(*block, [](const Instruction& i) { return i.mayWriteToMemory(); });
    };
    lingers_ = lingers_ || is_latch || any_of(left, lingers);
    const bool is_single = branches.size() == 1 && !(has_collectives && is_in_loop);
    BasicBlock* continuation = branches[0]->successor(branches[0]->reaching_edge);
    for (BasicBlock* copy : copy_for(edges, left)) {
      if (!isa<ReturnInst>(copy->getTerminator())) continue;
      IRBuilder<> builder(copy->getTerminator());
      create_exit(builder);
      if (is_single && !is_latch) exits_.push_back({copy, continuation});
    }
    if (is_single) return;
    for (const LeavingBranch* branch : branches)
      tails_.push_back({cast<BranchInst>(branch->block->getTerminator()), 1 - branch->reaching_edge});
  }

  // Structured control flow has one return. No thread continues after an exit, but for the order of blocks it is a side
  // of the branch.
  void join_exits() {
    for (auto [block, continuation] : exits_) {
      block->getTerminator()->eraseFromParent();
      IRBuilder<>(block).CreateBr(continuation);
      for (PHINode& phi : continuation->phis()) phi.addIncoming(Constant::getNullValue(phi.getType()), block);
    }
    if (!exits_.empty()) analyses_.invalidate(body_);
  }

  // The same for tails that branches share, and for collectives on paths out of a loop. Returns whether that is
  // possible.
  bool linearize_shared_tails() {
    if (tails_.empty()) return true;
    const Blocks barrier_blocks = barriers();
    size_t copies_allowed = 0;
    for (auto [branch, edge] : tails_)
      if (!order_tail_before_barriers(*branch, edge, barrier_blocks, copies_allowed,
                                      [](BasicBlock&, const Instruction&) { return true; }))
        return false;
    repair_ssa(body_);
    analyses_.invalidate(body_);
    return true;
  }

  // ---- Collectives that threads reach together

  bool threads_converge() {
    auto& divergence = analyses_.functions().getResult<DivergenceAnalysis>(body_);
    // A vote removes the threads that leave, so the others must reach the vote together, too.
    Blocks convergent_blocks = collective_blocks_;
    for (const BasicBlock& block : body_)
      if (reaching_edge(block, reaching_)) convergent_blocks.insert(&block);
    if (!barriers_are_uniform(body_, analyses_.functions(), convergent_blocks)) return false;
    for (BasicBlock& block : body_)
      if (reaching_edge(block, reaching_) && divergence.is_divergent_branch(block)) leaving_blocks_.push_back(&block);
    return true;
  }

  void vote_at_leaving_blocks() {
    if (leaving_blocks_.empty()) return;
    IRBuilder<> builder(launched_->getNextNode());
    variable_ = IRBuilder<>(&*body_.getEntryBlock().begin()).CreateAlloca(builder.getInt32Ty());
    builder.CreateStore(launched_, variable_);
    for (BasicBlock* block : leaving_blocks_) {
      auto* branch = cast<BranchInst>(block->getTerminator());
      builder.SetInsertPoint(branch);
      Value* condition = edge_condition(builder, *branch, *reaching_edge(*block, reaching_));
      builder.CreateStore(vote(builder, builder.CreateLoad(builder.getInt32Ty(), variable_), condition), variable_);
    }
  }

  // ---- Other collectives

  std::string structure(bool are_uniform) {
    join_exits();
    if (!linearize_shared_tails())
      return "threads that return exchange values where others would wait for them at a barrier";
    analyses_.run(kStructuring, body_);
    flow_.emplace(body_, analyses_.functions());
    if (std::string reason = flow_->check_structure(body_); !reason.empty()) return reason;
    launched_ = launched(body_);
    loops_ = &analyses_.functions().getResult<LoopAnalysis>(body_);
    dominators_ = &analyses_.functions().getResult<DominatorTreeAnalysis>(body_);
    // In reverse post-order a mask's operands come before it.
    ReversePostOrderTraversal<Function*> order(&body_);
    SmallVector<BasicBlock*> blocks(order.begin(), order.end());
    for (BasicBlock* block : blocks)
      if (any_of(*block, [&](const Instruction& i) { return is_collective(i); })) mask_of(*block);
    const Blocks barrier_blocks = barriers();
    while (!open_loops_.empty()) {
      Loop* loop = open_loops_.pop_back_val();
      // Threads that leave would wait at the loop's end for threads that wait at a barrier in it for all others.
      if (!are_uniform && any_of(loop->blocks(), [&](BasicBlock* block) { return barrier_blocks.contains(block); }))
        return "they may leave a loop with a threadgroup_barrier and come to one again";
      BasicBlock* latch = loop->getLoopLatch();
      if (mask_of(*latch) != live_[loop]) return "a loop whose end some of its threads do not reach";
      auto* branch = cast<BranchInst>(latch->getTerminator());
      IRBuilder<> builder(branch);
      Value* stays = edge_condition(builder, *branch, branch->getSuccessor(0) == loop->getHeader() ? 0 : 1);
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
      open_loops_.push_back(loop);
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
    return vote(builder, mask, edge_condition(builder, *branch, branch->getSuccessor(0) == &block ? 0 : 1));
  }

  // ---- Both

  SimdgroupMask mask_at(Instruction& collective) {
    IRBuilder<> builder(&collective);
    if (flow_) {
      Value* mask = masks_.at(collective.getParent());
      return {mask, mask, false};
    }
    if (variable_) {
      Value* mask = builder.CreateLoad(builder.getInt32Ty(), variable_);
      return {mask, mask, false};
    }
    // A constant mask is free. Threads that it names and that are missing have returned, or never existed.
    return {builder.getInt32(~0u), launched_, true};
  }

  Function& body_;
  ArrayRef<ConvergencePoint> points_;
  ThreadAnalyses analyses_{Lanes::kIndependent};
  bool lingers_ = false;  // threads that leave may still run when the others reach a barrier
  SmallVector<std::pair<BasicBlock*, BasicBlock*>> exits_;  // and the target of the branch's other edge
  SmallVector<std::pair<BranchInst*, unsigned>> tails_;     // and the edge that leads to them
  Blocks collective_blocks_, reaching_;
  AllocaInst* variable_ = nullptr;
  SmallVector<BasicBlock*> leaving_blocks_;
  std::optional<StructuredFlow> flow_;
  LoopInfo* loops_ = nullptr;
  DominatorTree* dominators_ = nullptr;
  DenseMap<BasicBlock*, Value*> masks_;
  DenseMap<Loop*, PHINode*> live_;
  SmallVector<Loop*> open_loops_;
  CallInst* launched_ = nullptr;
};

}  // namespace

Masks find_masks(Function& body, ArrayRef<ConvergencePoint> points) { return MaskFinder(body, points).run(); }

}  // namespace kiln
