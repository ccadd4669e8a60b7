#include "compiler/workgroup/reuse_barriers.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/CycleInfo.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <map>

#include "compiler/analysis/divergence.h"
#include "compiler/ir/block_sets.h"
#include "compiler/ir/convergence_point.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/ir/sections.h"
#include "compiler/lowering/matrix_products.h"
#include "core/cpu_image.h"

namespace kiln {
namespace {

using namespace llvm;

// A simdgroup function that gives a value; at others threads wait, and what they have to themselves is used again.
bool exchanges_values(const Instruction& instruction) {
  if (is_matrix_product(instruction)) return true;
  if (!is_collective(instruction)) return false;
  const auto* kind = dyn_cast<ConstantInt>(cast<CallInst>(instruction).getArgOperand(1));
  return !kind || kind->getZExtValue() != static_cast<uint64_t>(CpuExchange::kNone);
}

Difference between_threads_of_threadgroup(const Value& value) {
  const auto* instruction = dyn_cast<Instruction>(&value);
  if (!instruction) return Difference::kInherits;
  bool is_divergent = isa<AllocaInst>(instruction);
  if (const auto* load = dyn_cast<LoadInst>(instruction)) {
    is_divergent = !load->isSimple() || !load->hasMetadata(LLVMContext::MD_invariant_load);
  } else if (std::optional<uint64_t> which = thread_value(instruction)) {
    is_divergent = *which < kThreadgroupPosition || *which == kIndexInThreadgroup;
  } else if (const auto* intrinsic = dyn_cast<IntrinsicInst>(instruction)) {
    is_divergent = !intrinsic->doesNotAccessMemory();
  } else {
    is_divergent = is_divergent || isa<CallInst>(instruction) || instruction->mayReadOrWriteMemory();
  }
  return is_divergent ? Difference::kSource : Difference::kInherits;
}

class ReuseBarriers {
 public:
  explicit ReuseBarriers(Function& body) : body_(body) {
    for (Instruction& instruction : instructions(body_)) {
      has_barriers_ = has_barriers_ || is_threadgroup_barrier(instruction);
      if (exchanges_values(instruction)) exchanges_.push_back(cast<CallInst>(&instruction));
      if (auto* load = dyn_cast<LoadInst>(&instruction)) note(*load, load->getPointerOperand(), reads_);
      if (auto* store = dyn_cast<StoreInst>(&instruction)) note(*store, store->getPointerOperand(), writes_);
    }
  }

  void run() {
    if (!has_barriers_ || exchanges_.empty() || reads_.empty() || writes_.empty()) return;
    find_partial_blocks();
    for (CallInst* exchange : exchanges_) {
      if (partial_.contains(exchange->getParent()) || !is_between(*exchange)) continue;
      Function* barrier = body_.getParent()->getFunction(kThreadgroupBarrierFunction);
      CallInst* call = CallInst::Create(barrier, {exchange->getArgOperand(0)}, "", exchange->getIterator());
      call->setDebugLoc(exchange->getDebugLoc());
    }
  }

 private:
  using Accesses = std::map<const GlobalVariable*, SmallPtrSet<const Instruction*, 8>>;

  void note(const Instruction& access, const Value* pointer, Accesses& accesses) {
    SmallVector<const Value*> objects;
    getUnderlyingObjects(pointer, objects, nullptr, 0);
    for (const Value* object : objects) {
      const auto* variable = dyn_cast<GlobalVariable>(object);
      if (variable && variable->getSection() == kThreadgroupSection) accesses[variable].insert(&access);
    }
  }

  // Whether a read of some variable comes before, and a write of it behind, with no barrier on the way.
  bool is_between(const Instruction& exchange) const {
    for (const auto& [variable, reads] : reads_) {
      auto writes = writes_.find(variable);
      if (writes != writes_.end() && reaches(exchange, reads, /*backwards=*/true) &&
          reaches(exchange, writes->second, /*backwards=*/false))
        return true;
    }
    return false;
  }

  static bool reaches(const Instruction& from, const SmallPtrSet<const Instruction*, 8>& accesses, bool backwards) {
    SmallPtrSet<const BasicBlock*, 16> seen;
    SmallVector<const Instruction*> work;  // where to go on
    auto next = [&](const Instruction& at) { return backwards ? at.getPrevNode() : at.getNextNode(); };
    auto leave = [&](const BasicBlock& block) {
      auto enter = [&](const BasicBlock* other) {
        if (seen.insert(other).second) work.push_back(backwards ? &other->back() : &other->front());
      };
      if (backwards)
        for (const BasicBlock* before : predecessors(&block)) enter(before);
      else
        for (const BasicBlock* after : successors(&block)) enter(after);
    };
    if (const Instruction* at = next(from))
      work.push_back(at);
    else
      leave(*from.getParent());
    while (!work.empty()) {
      const Instruction* at = work.pop_back_val();
      const BasicBlock* block = at->getParent();
      for (; at; at = next(*at)) {
        if (accesses.contains(at)) return true;
        if (is_threadgroup_barrier(*at)) break;
      }
      if (!at) leave(*block);
    }
    return false;
  }

  // Blocks that some threads of the threadgroup may come to and others not, other than by having returned; or later,
  // where some wait in a loop that others have left.
  void find_partial_blocks() {
    CycleInfo cycles;
    cycles.compute(body_);
    PostDominatorTree after(body_);
    const Divergence divergence(body_, cycles, after, between_threads_of_threadgroup);
    SmallVector<const BasicBlock*> dividing;
    for (const BasicBlock& block : body_)
      if (divergence.is_divergent_branch(block) && parts(block)) dividing.push_back(&block);
    for (const BasicBlock* branch : dividing) {
      const DomTreeNode* meeting = after.getNode(branch)->getIDom();
      if (any_of(blocks_after(*branch, meeting->getBlock()), has_barrier)) {
        const Blocks reached = blocks_after(*branch);
        partial_.insert(reached.begin(), reached.end());
      }
    }
    while (!dividing.empty()) {
      const BasicBlock* branch = dividing.pop_back_val();
      for (const BasicBlock& block : body_) {
        if (after.properlyDominates(&block, branch) ||
            none_of(successors(branch), [&](const BasicBlock* side) { return after.dominates(&block, side); }))
          continue;
        if (partial_.insert(&block).second && succ_size(&block) > 1) dividing.push_back(&block);
      }
    }
  }

  static bool has_barrier(const BasicBlock* block) { return any_of(*block, is_threadgroup_barrier); }

  // Whether threads go different ways from here, not counting those that have returned by the next barrier. A switch
  // may have several ways besides one that returns.
  static bool parts(const BasicBlock& block) {
    SmallPtrSet<const BasicBlock*, 4> ways;
    for (const BasicBlock* next : successors(&block))
      if (!only_returns(next)) ways.insert(next);
    return ways.size() > 1;
  }

  // Whether nothing that others might wait at comes any more.
  static bool only_returns(const BasicBlock* start) {
    auto has_wait = [](const BasicBlock* block) {
      return any_of(*block, [](const Instruction& instruction) {
        return is_threadgroup_barrier(instruction) || is_matrix_product(instruction) || is_collective(instruction);
      });
    };
    return !has_wait(start) && none_of(blocks_after(*start), has_wait);
  }

  Function& body_;
  bool has_barriers_ = false;
  SmallVector<CallInst*> exchanges_;  // in the order of the program
  Accesses reads_, writes_;           // by variable
  Blocks partial_;
};

}  // namespace

void add_reuse_barriers(Function& body) { ReuseBarriers(body).run(); }

}  // namespace kiln
