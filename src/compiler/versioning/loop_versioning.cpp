#include "compiler/versioning/loop_versioning.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <cassert>
#include <memory>
#include <optional>

#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/likely.h"
#include "compiler/ir/loop_copies.h"
#include "compiler/ir/loop_metadata.h"
#include "compiler/ir/remarks.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/versioning/versioning.h"
#include "compiler/workgroup/thread_coarsening.h"

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

constexpr const char* kLoopVersioning = "loop-versioning";

// Of a loop that is versioned.
constexpr unsigned kMostClonedInstructions = 4000;

constexpr const char* kGuardedLoopVersioning = "guarded-loop-versioning";

// Of a loop of one thread: instructions, since both versions are to stay in the instruction cache, and iterations,
// below which the checks before the loop cost as much as those in it.
constexpr unsigned kMostOfAThread = 1000, kFewestTrips = 3;

// Collects what must hold at an insertion point so that conditions dominated by it hold in every iteration of the loops
// there.
class Conditions {
 public:
  // `insertion_point` is the end of a block. In loops for which `may_assume` returns true, "no index wraps" may become
  // one of the conditions.
  Conditions(Instruction& insertion_point, ScalarEvolution& evolution, DominatorTree& dominators, LoopInfo& loops,
             function_ref<bool(const Loop&)> may_assume)
      : insertion_point_(insertion_point),
        evolution_(evolution),
        dominators_(dominators),
        loops_(loops),
        may_assume_(may_assume),
        expander_(evolution, insertion_point.getDataLayout(), "rows") {}

  // Adds what the condition follows from; or returns false and adds nothing.
  bool require(Value* condition, bool value) {
    size_t known = known_.size(), comparisons = comparisons_.size(), bounds = upper_bounds_.size();
    if (add_requirement(condition, value, {})) return true;
    known_.truncate(known);
    comparisons_.truncate(comparisons);
    upper_bounds_.truncate(bounds);
    return false;
  }

  // Why the last condition was not added, as a remark has it.
  const char* why() const { return why_; }

  // Emits the conjunction at the insertion point.
  Value* expand() {
    IRBuilder<> builder(&insertion_point_);
    Value* all = builder.getTrue();
    // A value that the original code would not have evaluated may be poison. It must not poison the conjunction.
    auto holds = [&](const Known& known) { return known.value ? known.condition : builder.CreateNot(known.condition); };
    auto add_to_conjunction = [&](Value* part, const Known& unless = {}) {
      if (unless.condition) part = builder.CreateOr(holds(unless), part);
      all = builder.CreateAnd(all, builder.CreateFreeze(part));
    };
    auto expanded = [&](const SCEV* value) {
      return expander_.expandCodeFor(value, value->getType(), &insertion_point_);
    };
    for (const auto& [known, unless] : known_) add_to_conjunction(holds(known), unless);
    for (const Comparison& comparison : comparisons_) {
      Value *left = expanded(comparison.left), *right = expanded(comparison.right);
      add_to_conjunction(builder.CreateICmp(comparison.predicate, left, right), comparison.unless);
    }
    for (const UpperBound& bound : upper_bounds_) {
      Value *start = expanded(bound.start), *growth = expanded(bound.growth), *limit = expanded(bound.limit);
      Value* reduced_limit = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, limit, growth);
      // A select is shorter than a second condition. It fails needlessly if the reduced limit is 0.
      if (bound.unless.condition) start = builder.CreateSelect(holds(bound.unless), builder.getInt64(0), start);
      add_to_conjunction(builder.CreateICmpULT(start, reduced_limit));
    }
    for (auto& [loop, predicated] : predicated_)
      if (predicated && !predicated->getPredicate().isAlwaysTrue())
        add_to_conjunction(
            builder.CreateNot(expander_.expandCodeForPredicate(&predicated->getPredicate(), &insertion_point_)));
    return all;
  }

 private:
  struct Known {
    Value* condition = nullptr;
    bool value = true;
  };
  // Must hold unless `unless` does, which is available at the insertion point, or has no condition.
  struct Comparison {
    CmpInst::Predicate predicate;
    const SCEV *left, *right;
    Known unless;
  };
  // An index that grows from `start`, by `growth` in total.
  struct UpperBound {
    const SCEV *start, *growth, *limit;
    Known unless;
  };

  // Analysis of the loop that computes the value, under predicates of its own; null if those cannot be expanded at the
  // insertion point.
  PredicatedScalarEvolution* predicated_for(const Value* value) {
    auto* instruction = dyn_cast<Instruction>(value);
    Loop* loop = instruction ? loops_.getLoopFor(instruction->getParent()) : nullptr;
    if (!loop || !may_assume_(*loop)) return nullptr;
    auto [known, is_new] = predicated_.try_emplace(loop);
    if (is_new) {
      auto predicated = std::make_unique<PredicatedScalarEvolution>(evolution_, *loop);
      const SCEV* count = predicated->getBackedgeTakenCount();
      if (!isa<SCEVCouldNotCompute>(count) && is_available(count)) known->second = std::move(predicated);
    }
    return known->second.get();
  }

  const SCEV* count_of(const Loop* loop) {
    auto predicated = predicated_.find(loop);
    return predicated != predicated_.end() && predicated->second ? predicated->second->getBackedgeTakenCount()
                                                                 : evolution_.getBackedgeTakenCount(loop);
  }

  const SCEV* scev_of(Value* value) {
    PredicatedScalarEvolution* predicated = predicated_for(value);
    return predicated ? predicated->getSCEV(value) : evolution_.getSCEV(value);
  }

  // The value as an add recurrence of its loop, on the condition that it does not wrap.
  const SCEVAddRecExpr* without_wrap(Value* value) {
    PredicatedScalarEvolution* predicated = predicated_for(value);
    if (!predicated) return nullptr;
    bool is_checked_here = !SCEVExprContains(evolution_.getSCEV(value), [&](const SCEV* part) {
      auto* growing = dyn_cast<SCEVAddRecExpr>(part);
      return growing && (!is_available(growing->getStart()) || !is_available(growing->getStepRecurrence(evolution_)));
    });
    return is_checked_here ? predicated->getAsAddRec(value) : nullptr;
  }

  bool is_available(const SCEV* value) const { return expander_.isSafeToExpandAt(value, &insertion_point_); }

  bool fail(const char* why) {
    why_ = why;
    return false;
  }

  bool add_requirement(Value* condition, bool value, const Known& unless) {
    why_ = "the check is no comparison with the size of an array";
    if (auto* known = dyn_cast<ConstantInt>(condition)) return known->isOne() == value;
    if (dominators_.dominates(condition, &insertion_point_)) {
      known_.push_back({{condition, value}, unless});
      return true;
    }
    Value *one, *other;
    if (match(condition, m_Not(m_Value(one)))) return add_requirement(one, !value, unless);
    const bool is_and = match(condition, m_LogicalAnd(m_Value(one), m_Value(other)));
    if (is_and || match(condition, m_LogicalOr(m_Value(one), m_Value(other)))) {
      if (is_and == value) return add_requirement(one, value, unless) && add_requirement(other, value, unless);
      if (dominators_.dominates(other, &insertion_point_)) std::swap(one, other);
      return !unless.condition && dominators_.dominates(one, &insertion_point_) &&
             add_requirement(other, value, {one, value});
    }
    auto* comparison = dyn_cast<ICmpInst>(condition);
    if (!comparison) return false;
    CmpInst::Predicate predicate = value ? comparison->getPredicate() : comparison->getInversePredicate();
    bool is_swapped = predicate == CmpInst::ICMP_UGT;
    if (is_swapped) predicate = CmpInst::ICMP_ULT;
    Value* smaller = comparison->getOperand(is_swapped ? 1 : 0);
    const SCEV *left = scev_of(smaller), *right = scev_of(comparison->getOperand(is_swapped ? 0 : 1));
    // A condition that never holds stays where it is.
    if (evolution_.isKnownPredicate(CmpInst::getInversePredicate(predicate), left, right))
      return fail("the index is always outside of the array");
    if (is_available(left) && is_available(right)) {
      comparisons_.push_back({predicate, left, right, unless});
      return true;
    }
    if (!is_available(right)) return fail("the size of the array is computed in the loop");
    if (predicate != CmpInst::ICMP_ULT || !left->getType()->isIntegerTy() ||
        evolution_.getTypeSizeInBits(left->getType()) > 64)
      return false;
    if (!isa<SCEVAddRecExpr>(left))
      if (const SCEVAddRecExpr* growing = without_wrap(smaller)) left = growing;
    return add_upper_bound(left, right, unless);
  }

  // An index that grows in one or several loops stays below an invariant limit if its last value does: the growth is
  // small enough that no earlier value has wrapped. Sums are of 64 bits, whatever the index has.
  bool add_upper_bound(const SCEV* value, const SCEV* limit, const Known& unless) {
    constexpr unsigned kStepBits = 24, kCountBits = 34;
    Type* number = Type::getInt64Ty(evolution_.getContext());
    const SCEV* growth = evolution_.getZero(number);
    unsigned loops = 0;
    why_ = "the index is not affine in the loop's counter";
    for (; auto* growing = dyn_cast<SCEVAddRecExpr>(value); value = growing->getStart()) {
      auto* step = dyn_cast<SCEVConstant>(growing->getStepRecurrence(evolution_));
      const SCEV* count = count_of(growing->getLoop());
      if (step && !step->getAPInt().isStrictlyPositive()) return fail("the index falls from iteration to iteration");
      if (isa<SCEVCouldNotCompute>(count)) return fail("how often the loop runs is not known before it");
      if (!growing->isAffine() || !step || !step->getAPInt().isStrictlyPositive() ||
          step->getAPInt().getActiveBits() > kStepBits || evolution_.getTypeSizeInBits(count->getType()) > 64 ||
          evolution_.getUnsignedRangeMax(count).getActiveBits() > kCountBits || ++loops > 8)
        return false;
      // A loop over the halves of 64 threads has one or two iterations. Limits for two are computed before the outer
      // loop.
      if (evolution_.getUnsignedRangeMax(count).isOne()) count = evolution_.getOne(count->getType());
      growth = evolution_.getAddExpr(growth, evolution_.getMulExpr(evolution_.getNoopOrZeroExtend(count, number),
                                                                   evolution_.getNoopOrZeroExtend(step, number)));
    }
    if (loops == 0 || !is_available(value) || !is_available(growth)) return false;
    upper_bounds_.push_back(
        {evolution_.getNoopOrZeroExtend(value, number), growth, evolution_.getNoopOrZeroExtend(limit, number), unless});
    return true;
  }

  Instruction& insertion_point_;
  ScalarEvolution& evolution_;
  DominatorTree& dominators_;
  LoopInfo& loops_;
  function_ref<bool(const Loop&)> may_assume_;
  SCEVExpander expander_;
  MapVector<const Loop*, std::unique_ptr<PredicatedScalarEvolution>> predicated_;
  SmallVector<std::pair<Known, Known>> known_;  // the first, unless the second
  SmallVector<Comparison> comparisons_;
  SmallVector<UpperBound> upper_bounds_;
  const char* why_ = "";
};

// The checks in the loop's own blocks, but not those in loops over lanes within it.
SmallVector<BranchInst*> checks_of(const Loop& loop, const LoopInfo& loops) {
  SmallVector<BranchInst*> checks;
  for (BasicBlock* block : loop.blocks())
    if (BranchInst* check = check_of(*block); check && loops.getLoopFor(block) == &loop) checks.push_back(check);
  return checks;
}

bool in_no_loop(const Loop&) { return false; }

// What the three scopes of this file have in common: the analysis of loops.
class ScopeWithLoops : public VersioningScope {
 protected:
  ScopeWithLoops(Instruction& insertion_point, Function& function, FunctionAnalysisManager& analyses,
                 function_ref<bool(const Loop&)> may_assume)
      : insertion_point_(insertion_point),
        conditions_(insertion_point, analyses.getResult<ScalarEvolutionAnalysis>(function),
                    analyses.getResult<DominatorTreeAnalysis>(function), analyses.getResult<LoopAnalysis>(function),
                    may_assume) {}

  bool require(BranchInst& check, bool value) override { return conditions_.require(check.getCondition(), value); }
  bool may_keep(BranchInst&) override { return true; }
  bool is_enough(size_t hoisted) override { return hoisted > 0; }
  Value* expand() override { return conditions_.expand(); }

  Instruction& insertion_point_;
  Conditions conditions_;
};

// A loop: the slow copy is a second loop. No check may stay.
class LoopScope : public ScopeWithLoops {
 public:
  LoopScope(Loop& loop, FunctionAnalysisManager& analyses, function_ref<bool(const Loop&)> is_this)
      : ScopeWithLoops(*loop.getLoopPreheader()->getTerminator(), *loop.getHeader()->getParent(), analyses, is_this),
        loop_(loop),
        loops_(analyses.getResult<LoopAnalysis>(*loop.getHeader()->getParent())),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(*loop.getHeader()->getParent())) {}

 private:
  bool may_keep(BranchInst& check) override {
    remark(kLoopVersioning, check, "not this loop: ", conditions_.why());
    return false;
  }

  void select(Value* condition) override {
    mark_likely(copy_loop(loop_, condition, ".slow", loops_, dominators_).branch);
  }

  Loop& loop_;
  LoopInfo& loops_;
  DominatorTree& dominators_;
};

class LoopVersioning {
 public:
  LoopVersioning(Function& function, FunctionAnalysisManager& analyses, unsigned fewest)
      : analyses_(analyses),
        fewest_(fewest),
        loops_(analyses.getResult<LoopAnalysis>(function)),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(function)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(function)) {}

  bool run() {
    // Inner loops first. A loop around a versioned one is not versioned.
    SmallVector<Loop*> order = loops_.getLoopsInPreorder();
    DenseSet<Loop*> versioned;
    for (Loop* loop : reverse(order)) {
      if (!any_of(loop->getSubLoops(), [&](Loop* inner) { return versioned.contains(inner); }) && !version(*loop))
        continue;
      versioned.insert(loop);
      has_changed_ = true;
    }
    return has_changed_;
  }

 private:
  bool version(Loop& loop) {
    SmallVector<BranchInst*> checks = checks_of(loop, loops_);
    size_t size = 0;
    for (const BasicBlock* block : loop.blocks()) size += block->size();
    if (checks.size() < fewest_) {
      if (!checks.empty())
        remark(kLoopVersioning, loop, "not this loop: it has ", checks.size(),
               checks.size() == 1 ? " check" : " checks", ", and fewer than ", fewest_, " are not worth a second loop");
      return false;
    }
    if (size > kMostClonedInstructions) {
      remark(kLoopVersioning, loop, "not this loop: it has ", size, " instructions, more than ",
             kMostClonedInstructions);
      return false;
    }
    // Loops that are not versioned stay in this form.
    has_changed_ |= simplifyLoop(&loop, &dominators_, &loops_, &evolution_, nullptr, nullptr, /*PreserveLCSSA=*/false);
    has_changed_ |= formLCSSARecursively(loop, dominators_, &loops_, &evolution_);
    if (!loop.isLoopSimplifyForm() || !loop.isSafeToClone()) return false;
    auto is_this = [&](const Loop& other) { return &other == &loop; };
    if (!LoopScope(loop, analyses_, is_this).version(checks)) return false;
    evolution_.forgetTopmostLoop(&loop);
    return true;
  }

  FunctionAnalysisManager& analyses_;
  unsigned fewest_;
  LoopInfo& loops_;
  DominatorTree& dominators_;
  ScalarEvolution& evolution_;
  bool has_changed_ = false;
};

// Loops of one thread, whose accesses have bounds guards: an address where the check holds, else zeros or a sink.
class GuardedLoopVersioning {
 public:
  GuardedLoopVersioning(Function& function, FunctionAnalysisManager& analyses)
      : loops_(analyses.getResult<LoopAnalysis>(function)),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(function)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(function)) {}

  bool run() {
    for (Loop* loop : SmallVector<Loop*>(loops_.begin(), loops_.end())) {
      if (guards_in(*loop).empty()) continue;
      // Before guards are collected: it moves those that the loop does not change out of it.
      has_changed_ |= simplifyLoop(loop, &dominators_, &loops_, &evolution_, nullptr, nullptr, /*PreserveLCSSA=*/false);
      has_changed_ |= formLCSSARecursively(*loop, dominators_, &loops_, &evolution_);
      version_nest(*loop);
    }
    return has_changed_;
  }

 private:
  // A nest of loops is versioned as a whole if that hoists all checks, else each of the loops in it. Returns whether
  // any was.
  bool version_nest(Loop& loop) {
    const SmallVector<SelectInst*> guards = guards_in(loop);
    if (guards.empty()) return false;
    if (version(loop, guards, guards.size())) return true;
    bool has_versioned = false;
    for (Loop* inner : SmallVector<Loop*>(loop.begin(), loop.end())) has_versioned |= version_nest(*inner);
    return has_versioned || version(loop, guards, 1);
  }

  // Those of accesses that every iteration makes. (Another's index may be outside of its array wherever it is not
  // used.)
  SmallVector<SelectInst*> guards_in(const Loop& loop) const {
    auto is_always_used = [&](const SelectInst& guard) {
      return any_of(guard.users(), [&](const User* user) {
        const auto& access = *cast<Instruction>(user);
        return !isa<PHINode>(access) && loop.contains(&access) && runs_in_each_iteration(*access.getParent(), loop);
      });
    };
    SmallVector<SelectInst*> guards;
    for (BasicBlock* block : loop.blocks())
      for (Instruction& instruction : *block)
        if (auto* guard = dyn_cast<SelectInst>(&instruction); guard && guard->getType()->isPointerTy())
          if ((is_zeros(guard->getFalseValue()) || is_sink(guard->getFalseValue())) && is_always_used(*guard))
            guards.push_back(guard);
    return guards;
  }

  bool runs_in_each_iteration(const BasicBlock& block, const Loop& loop) const {
    for (const Loop* around = loops_.getLoopFor(&block);; around = around->getParentLoop()) {
      const BasicBlock* latch = around->getLoopLatch();
      if (!latch || !dominators_.dominates(&block, latch)) return false;
      if (around == &loop) return true;
    }
  }

  // Whether another thread may be waited for in the loop, or it is too long for a second one.
  bool may_clone(const Loop& loop) const {
    size_t size = 0;
    for (const BasicBlock* block : loop.blocks()) {
      size += block->size();
      for (const Instruction& instruction : *block)
        if (auto* call = dyn_cast<CallBase>(&instruction); call && call->isConvergent()) return false;
    }
    return size <= kMostOfAThread && loop.isSafeToClone();
  }

  bool version(Loop& loop, ArrayRef<SelectInst*> guards, size_t fewest) {
    if (!may_clone(loop)) return false;
    if (const unsigned trips = evolution_.getSmallConstantMaxTripCount(&loop); trips > 0 && trips < kFewestTrips)
      return false;
    if (!loop.isLoopSimplifyForm() || !loop.isRecursivelyLCSSAForm(dominators_, loops_)) return false;
    auto is_in_nest = [&](const Loop& other) { return loop.contains(&other); };
    Conditions conditions(*loop.getLoopPreheader()->getTerminator(), evolution_, dominators_, loops_, is_in_nest);
    SmallVector<SelectInst*> hoisted;
    SmallVector<std::pair<SelectInst*, const char*>> kept;
    for (SelectInst* guard : guards)
      if (conditions.require(guard->getCondition(), true))
        hoisted.push_back(guard);
      else
        kept.push_back({guard, conditions.why()});
    const bool is_enough = hoisted.size() >= fewest;
    // Else the loops in this one follow, which may hoist it.
    if (is_enough || loop.isInnermost())
      for (const auto& [guard, why] : kept) remark(kGuardedLoopVersioning, *guard, "a check stays in the loop: ", why);
    if (!is_enough) return false;
    const LoopCopy slow = copy_loop(loop, conditions.expand(), ".slow", loops_, dominators_);
    mark_likely(slow.branch);
    for (Loop* copy : slow.loop.getLoopsInPreorder())
      if (BasicBlock* latch = copy->getLoopLatch())
        if (auto* back = dyn_cast<BranchInst>(latch->getTerminator())) never_unroll(*back);
    for (SelectInst* guard : hoisted) {
      // One in front of the loop would serve the slow version, too.
      assert(loop.contains(guard));
      guard->replaceAllUsesWith(guard->getTrueValue());
      guard->eraseFromParent();
    }
    evolution_.forgetTopmostLoop(&loop);
    has_changed_ = true;
    return true;
  }

  LoopInfo& loops_;
  DominatorTree& dominators_;
  ScalarEvolution& evolution_;
  bool has_changed_ = false;
};

// Whether no value computed in the loop is used outside it.
bool has_no_live_outs(const Loop& loop) {
  for (const BasicBlock* block : loop.blocks())
    for (const Instruction& instruction : *block)
      for (const User* user : instruction.users())
        if (!loop.contains(cast<Instruction>(user))) return false;
  return true;
}

// The loop over halves, which goes on at `next`: the slow copy is the simdgroup's function.
class HalvesScope : public ScopeWithLoops {
 public:
  HalvesScope(const CoarsenedLoop& halves, BasicBlock& next, Function& simdgroup, Function& function,
              FunctionAnalysisManager& analyses)
      : ScopeWithLoops(*halves.insertion_point(), function, analyses, in_no_loop),
        halves_(halves),
        next_(next),
        simdgroup_(simdgroup),
        always_(analyses.getResult<PostDominatorTreeAnalysis>(function)) {}

 private:
  // Only checks that always execute.
  bool require(BranchInst& check, bool value) override {
    return always_.dominates(check.getParent(), halves_.loop->getHeader()) && ScopeWithLoops::require(check, value);
  }

  void select(Value* condition) override {
    Function& function = *insertion_point_.getFunction();
    auto block = [&](const char* name) { return BasicBlock::Create(function.getContext(), name, &function); };
    BasicBlock *first = block("apart"), *second = block("apart.second");
    mark_likely(branch_at(insertion_point_, condition, *first));
    IRBuilder<> builder(first);
    auto call = [&](unsigned half_offset) {
      builder.CreateCall(&simdgroup_, {function.getArg(0), function.getArg(1), builder.getInt32(half_offset),
                                       /*row=*/builder.getInt32(0), halves_.x, builder.getInt32(kLanes)});
    };
    call(0);
    Value* left = builder.CreateSub(function.getArg(2), halves_.x);
    builder.CreateCondBr(builder.CreateICmpULT(left, builder.getInt32(kCoarsenedThreads)), &next_, second);
    builder.SetInsertPoint(second);
    call(kLanes);
    builder.CreateBr(&next_);
  }

  const CoarsenedLoop& halves_;
  BasicBlock& next_;
  Function& simdgroup_;
  const PostDominatorTree& always_;
};

// Whether the load reads the launch's description of its arguments. `launch`, the function's first parameter, begins
// with a pointer to it.
bool reads_arguments(const LoadInst& load, const Argument& launch) {
  auto base_of = [&](const LoadInst& from, APInt& offset) {
    return from.getPointerOperand()->stripAndAccumulateConstantOffsets(from.getDataLayout(), offset, true);
  };
  APInt offset(64, 0);
  const Value* base = base_of(load, offset);
  if (!load.hasMetadata(LLVMContext::MD_invariant_load)) return false;
  if (base == &launch) return true;
  auto* arguments = dyn_cast<LoadInst>(base);
  APInt first(64, 0);
  return arguments && arguments->hasMetadata(LLVMContext::MD_invariant_load) && base_of(*arguments, first) == &launch &&
         first.isZero();
}

// Limits must be available at the insertion point of the checks.
void hoist_argument_loads(Function& function) {
  BasicBlock& entry = function.getEntryBlock();
  Instruction* insertion_point =
      &*find_if(entry, [](const Instruction& i) { return i.isTerminator() || i.mayWriteToMemory(); });
  for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function))
    for (Instruction& instruction : make_early_inc_range(*block)) {
      auto* load = dyn_cast<LoadInst>(&instruction);
      if (!load || !reads_arguments(*load, *function.getArg(0))) continue;
      if (block == &entry && load->comesBefore(insertion_point)) continue;
      APInt offset(64, 0);
      Value* base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(load->getDataLayout(), offset, true);
      IRBuilder<> builder(insertion_point);
      load->setOperand(0, builder.CreatePtrAdd(base, builder.getInt(offset)));
      load->moveBefore(insertion_point);
    }
}

// Whether unrolling removes the loop and all loops around it.
bool is_unrolled(const Loop& loop) {
  for (const Loop* around = &loop; around; around = around->getParentLoop())
    if (!is_always_unrolled(*around)) return false;
  return true;
}

// A threadgroup's function, from the end of its first block on: the slow copy is a clone of it.
class ThreadgroupScope : public ScopeWithLoops {
 public:
  ThreadgroupScope(Function& function, FunctionAnalysisManager& analyses, bool can_hoist_without_assumptions)
      : ScopeWithLoops(*function.getEntryBlock().getTerminator(), function, analyses, is_unrolled),
        function_(function),
        can_hoist_without_assumptions_(can_hoist_without_assumptions) {}

 private:
  void copy() override {
    ValueToValueMapTy map;
    slow_ = CloneFunction(&function_, map);
    slow_->setName(function_.getName() + kSlowSuffix);
    slow_->setLinkage(GlobalValue::InternalLinkage);
    // The clone rarely runs: an index that depends on the threadgroup's position wraps or leaves its array in few of
    // them.
    if (!can_hoist_without_assumptions_) disable_unrolling(*slow_);
  }

  void select(Value* condition) override {
    BasicBlock* other = BasicBlock::Create(function_.getContext(), "apart", &function_);
    branch_at(insertion_point_, condition, *other);
    IRBuilder<> builder(other);
    SmallVector<Value*> arguments;
    for (Argument& argument : function_.args()) arguments.push_back(&argument);
    builder.CreateCall(slow_, arguments);
    builder.CreateRetVoid();
  }

  Function& function_;
  const bool can_hoist_without_assumptions_;
  Function* slow_ = nullptr;
};

}  // namespace

PreservedAnalyses LoopVersioningPass::run(Function& function, FunctionAnalysisManager& analyses) {
  return LoopVersioning(function, analyses, fewest).run() ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

PreservedAnalyses GuardedLoopVersioningPass::run(Function& function, FunctionAnalysisManager& analyses) {
  return GuardedLoopVersioning(function, analyses).run() ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

PreservedAnalyses CoarsenedLoopVersioningPass::run(Function& function, FunctionAnalysisManager& analyses) {
  auto& loops = analyses.getResult<LoopAnalysis>(function);
  for (Loop* outer : loops) {
    const CoarsenedLoop halves = coarsened_loop_of(*outer);
    BasicBlock* next = halves.loop ? halves.loop->getUniqueExitBlock() : nullptr;
    if (!next || !next->phis().empty() || !has_no_live_outs(*halves.loop)) continue;
    if (HalvesScope(halves, *next, simdgroup, function, analyses).version(checks_of(*halves.loop, loops)))
      return PreservedAnalyses::none();
  }
  return PreservedAnalyses::all();
}

PreservedAnalyses ThreadgroupVersioningPass::run(Function& function, FunctionAnalysisManager& analyses) {
  hoist_argument_loads(function);
  // Before the function's first write.
  BasicBlock& entry = function.getEntryBlock();
  auto begins = find_if(entry, [](const Instruction& i) { return i.isTerminator() || i.mayWriteToMemory(); });
  auto& loops = analyses.getResult<LoopAnalysis>(function);
  auto& dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  if (!begins->isTerminator()) SplitBlock(&entry, &*begins, &dominators, &loops);
  auto& evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  const SmallVector<BranchInst*> checks = checks_of(function);
  Conditions certain(*entry.getTerminator(), evolution, dominators, loops, in_no_loop);
  const auto certainly_hoisted = count_if(checks, [&](BranchInst* check) {
    return certain.require(check->getCondition(), *likely_successor(*check) == 0);
  });
  ThreadgroupScope(function, analyses, certainly_hoisted > 0).version(checks);
  return PreservedAnalyses::none();
}

}  // namespace kiln
