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

// A collective that yields a value. At the others a simdgroup only synchronizes, to reuse memory of its own.
bool yields_value(const Instruction& instruction) {
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
    is_divergent = is_divergent_value(*which);
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
      if (yields_value(instruction)) collectives_.push_back(cast<CallInst>(&instruction));
      if (auto* load = dyn_cast<LoadInst>(&instruction)) add_access(*load, load->getPointerOperand(), reads_);
      if (auto* store = dyn_cast<StoreInst>(&instruction)) add_access(*store, store->getPointerOperand(), writes_);
    }
  }

  void run() {
    if (!has_barriers_ || collectives_.empty() || reads_.empty() || writes_.empty()) return;
    find_partial_blocks();
    for (CallInst* collective : collectives_) {
      if (partial_.contains(collective->getParent()) || !needs_barrier(*collective)) continue;
      Function* barrier = body_.getParent()->getFunction(kThreadgroupBarrierFunction);
      CallInst* call = CallInst::Create(barrier, {collective->getArgOperand(0)}, "", collective->getIterator());
      call->setDebugLoc(collective->getDebugLoc());
    }
  }

 private:
  using Accesses = std::map<const GlobalVariable*, SmallPtrSet<const Instruction*, 8>>;

  void add_access(const Instruction& access, const Value* pointer, Accesses& accesses) {
    SmallVector<const Value*> objects;
    getUnderlyingObjects(pointer, objects, nullptr, 0);
    for (const Value* object : objects) {
      const auto* variable = dyn_cast<GlobalVariable>(object);
      if (variable && variable->getSection() == kThreadgroupSection) accesses[variable].insert(&access);
    }
  }

  // Whether some variable is read before the collective and written after it, with no barrier in between.
  bool needs_barrier(const Instruction& collective) const {
    for (const auto& [variable, reads] : reads_) {
      auto writes = writes_.find(variable);
      if (writes != writes_.end() && reaches(collective, reads, /*backwards=*/true) &&
          reaches(collective, writes->second, /*backwards=*/false))
        return true;
    }
    return false;
  }

  static bool reaches(const Instruction& from, const SmallPtrSet<const Instruction*, 8>& accesses, bool backwards) {
    SmallPtrSet<const BasicBlock*, 16> seen;
    SmallVector<const Instruction*> worklist;  // instructions to continue from
    auto next = [&](const Instruction& at) { return backwards ? at.getPrevNode() : at.getNextNode(); };
    auto push_neighbours = [&](const BasicBlock& block) {
      auto push = [&](const BasicBlock* other) {
        if (seen.insert(other).second) worklist.push_back(backwards ? &other->back() : &other->front());
      };
      if (backwards)
        for (const BasicBlock* before : predecessors(&block)) push(before);
      else
        for (const BasicBlock* after : successors(&block)) push(after);
    };
    if (const Instruction* at = next(from))
      worklist.push_back(at);
    else
      push_neighbours(*from.getParent());
    while (!worklist.empty()) {
      const Instruction* at = worklist.pop_back_val();
      const BasicBlock* block = at->getParent();
      for (; at; at = next(*at)) {
        if (accesses.contains(at)) return true;
        if (is_threadgroup_barrier(*at)) break;
      }
      if (!at) push_neighbours(*block);
    }
    return false;
  }

  // Blocks that only some threads of the threadgroup may reach, not counting those that have returned; or that threads
  // reach at different times, because some are still in a loop that others have left.
  void find_partial_blocks() {
    CycleInfo cycles;
    cycles.compute(body_);
    PostDominatorTree after(body_);
    const Divergence divergence(body_, cycles, after, between_threads_of_threadgroup);
    SmallVector<const BasicBlock*> divergent;
    for (const BasicBlock& block : body_)
      if (divergence.is_divergent_branch(block) && splits_running_threads(block)) divergent.push_back(&block);
    for (const BasicBlock* branch : divergent) {
      const DomTreeNode* join = after.getNode(branch)->getIDom();
      if (any_of(blocks_after(*branch, join->getBlock()), has_barrier)) {
        const Blocks reached = blocks_after(*branch);
        partial_.insert(reached.begin(), reached.end());
      }
    }
    while (!divergent.empty()) {
      const BasicBlock* branch = divergent.pop_back_val();
      for (const BasicBlock& block : body_) {
        if (after.properlyDominates(&block, branch) ||
            none_of(successors(branch), [&](const BasicBlock* side) { return after.dominates(&block, side); }))
          continue;
        if (partial_.insert(&block).second && succ_size(&block) > 1) divergent.push_back(&block);
      }
    }
  }

  static bool has_barrier(const BasicBlock* block) { return any_of(*block, is_threadgroup_barrier); }

  // Whether threads diverge here, not counting those that have returned by the next barrier. A switch may have several
  // successors besides one that returns.
  static bool splits_running_threads(const BasicBlock& block) {
    SmallPtrSet<const BasicBlock*, 4> running;
    for (const BasicBlock* next : successors(&block))
      if (!only_returns(next)) running.insert(next);
    return running.size() > 1;
  }

  // Whether no convergence point follows.
  static bool only_returns(const BasicBlock* start) {
    auto has_convergence_point = [](const BasicBlock* block) {
      return any_of(*block, [](const Instruction& instruction) {
        return is_threadgroup_barrier(instruction) || is_matrix_product(instruction) || is_collective(instruction);
      });
    };
    return !has_convergence_point(start) && none_of(blocks_after(*start), has_convergence_point);
  }

  Function& body_;
  bool has_barriers_ = false;
  SmallVector<CallInst*> collectives_;  // in program order
  Accesses reads_, writes_;             // by variable
  Blocks partial_;
};

}  // namespace

void add_reuse_barriers(Function& body) { ReuseBarriers(body).run(); }

}  // namespace kiln
