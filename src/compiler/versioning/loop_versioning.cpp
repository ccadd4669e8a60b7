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

#include <memory>
#include <optional>

#include "compiler/ir/likely.h"
#include "compiler/ir/loop_metadata.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/workgroup/thread_coarsening.h"

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

// Of a loop that is made twice.
constexpr unsigned kMostInstructions = 4000;

// What must hold at a place for conditions behind it to hold, however often they are asked in loops.
class Conditions {
 public:
  // Behind the place, which is the end of a block. That no index wraps is a condition in loops for which
  // `may_assume` says so.
  Conditions(Instruction& place, ScalarEvolution& evolution, DominatorTree& dominators, LoopInfo& loops,
             function_ref<bool(const Loop&)> may_assume)
      : place_(place),
        evolution_(evolution),
        dominators_(dominators),
        loops_(loops),
        may_assume_(may_assume),
        expander_(evolution, place.getDataLayout(), "rows") {}

  // Remembers what follows; or false.
  bool require(Value* condition, bool value) {
    size_t known = known_.size(), comparisons = comparisons_.size(), below = below_.size();
    if (adds(condition, value, {})) return true;
    known_.truncate(known);
    comparisons_.truncate(comparisons);
    below_.truncate(below);
    return false;
  }

  // As a number, at the place.
  Value* ask() {
    IRBuilder<> builder(&place_);
    Value* all = builder.getTrue();
    // What the code would not have looked at may be poison, and must not make poison of what is known.
    auto holds = [&](const Known& known) { return known.value ? known.condition : builder.CreateNot(known.condition); };
    auto add = [&](Value* part, const Known& unless = {}) {
      if (unless.condition) part = builder.CreateOr(holds(unless), part);
      all = builder.CreateAnd(all, builder.CreateFreeze(part));
    };
    auto expanded = [&](const SCEV* value) { return expander_.expandCodeFor(value, value->getType(), &place_); };
    for (const auto& [known, unless] : known_) add(holds(known), unless);
    for (const Comparison& comparison : comparisons_) {
      Value *left = expanded(comparison.left), *right = expanded(comparison.right);
      add(builder.CreateICmp(comparison.predicate, left, right), comparison.unless);
    }
    for (const Below& below : below_) {
      Value *start = expanded(below.start), *growth = expanded(below.growth), *limit = expanded(below.limit);
      Value* least = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, limit, growth);
      // Shorter than a second condition. Where nothing is below the limit, one may be asked in vain.
      if (below.unless.condition) start = builder.CreateSelect(holds(below.unless), builder.getInt64(0), start);
      add(builder.CreateICmpULT(start, least));
    }
    for (auto& [loop, predicated] : predicated_)
      if (predicated && !predicated->getPredicate().isAlwaysTrue())
        add(builder.CreateNot(expander_.expandCodeForPredicate(&predicated->getPredicate(), &place_)));
    return all;
  }

 private:
  struct Known {
    Value* condition = nullptr;
    bool value = true;
  };
  // Each holds unless what is known at the place does, if anything is.
  struct Comparison {
    CmpInst::Predicate predicate;
    const SCEV *left, *right;
    Known unless;
  };
  // What grows from `start` on, by `growth` in all.
  struct Below {
    const SCEV *start, *growth, *limit;
    Known unless;
  };

  // What is known of the loop that computes the value, under conditions of its own; null where there are none that can
  // be asked at the place.
  PredicatedScalarEvolution* predicated_for(const Value* value) {
    auto* instruction = dyn_cast<Instruction>(value);
    Loop* loop = instruction ? loops_.getLoopFor(instruction->getParent()) : nullptr;
    if (!loop || !may_assume_(*loop)) return nullptr;
    auto [known, is_new] = predicated_.try_emplace(loop);
    if (is_new) {
      auto predicated = std::make_unique<PredicatedScalarEvolution>(evolution_, *loop);
      const SCEV* count = predicated->getBackedgeTakenCount();
      if (!isa<SCEVCouldNotCompute>(count) && is_known(count)) known->second = std::move(predicated);
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

  // The value as one that grows in its loop, on the condition that it does not wrap.
  const SCEVAddRecExpr* without_wrap(Value* value) {
    PredicatedScalarEvolution* predicated = predicated_for(value);
    if (!predicated) return nullptr;
    bool is_checked_here = !SCEVExprContains(evolution_.getSCEV(value), [&](const SCEV* part) {
      auto* growing = dyn_cast<SCEVAddRecExpr>(part);
      return growing && (!is_known(growing->getStart()) || !is_known(growing->getStepRecurrence(evolution_)));
    });
    return is_checked_here ? predicated->getAsAddRec(value) : nullptr;
  }

  bool is_known(const SCEV* value) const { return expander_.isSafeToExpandAt(value, &place_); }

  bool adds(Value* condition, bool value, const Known& unless) {
    if (auto* known = dyn_cast<ConstantInt>(condition)) return known->isOne() == value;
    if (dominators_.dominates(condition, &place_)) {
      known_.push_back({{condition, value}, unless});
      return true;
    }
    Value *one, *other;
    if (match(condition, m_Not(m_Value(one)))) return adds(one, !value, unless);
    const bool is_and = match(condition, m_LogicalAnd(m_Value(one), m_Value(other)));
    if (is_and || match(condition, m_LogicalOr(m_Value(one), m_Value(other)))) {
      if (is_and == value) return adds(one, value, unless) && adds(other, value, unless);
      if (dominators_.dominates(other, &place_)) std::swap(one, other);
      return !unless.condition && dominators_.dominates(one, &place_) && adds(other, value, {one, value});
    }
    auto* comparison = dyn_cast<ICmpInst>(condition);
    if (!comparison) return false;
    CmpInst::Predicate predicate = value ? comparison->getPredicate() : comparison->getInversePredicate();
    bool is_swapped = predicate == CmpInst::ICMP_UGT;
    if (is_swapped) predicate = CmpInst::ICMP_ULT;
    Value* smaller = comparison->getOperand(is_swapped ? 1 : 0);
    const SCEV *left = scev_of(smaller), *right = scev_of(comparison->getOperand(is_swapped ? 0 : 1));
    // What never holds is asked where it is.
    if (evolution_.isKnownPredicate(CmpInst::getInversePredicate(predicate), left, right)) return false;
    if (is_known(left) && is_known(right)) {
      comparisons_.push_back({predicate, left, right, unless});
      return true;
    }
    if (predicate != CmpInst::ICMP_ULT || !is_known(right) || !left->getType()->isIntegerTy(64)) return false;
    if (!isa<SCEVAddRecExpr>(left))
      if (const SCEVAddRecExpr* growing = without_wrap(smaller)) left = growing;
    return adds_below(left, right, unless);
  }

  // What grows in one loop or several and stays below a limit that does not: where the last one does, and the way to it
  // is short, none before has wrapped.
  bool adds_below(const SCEV* value, const SCEV* limit, const Known& unless) {
    constexpr unsigned kStepBits = 24, kCountBits = 34;
    Type* number = value->getType();
    const SCEV* growth = evolution_.getZero(number);
    unsigned loops = 0;
    for (; auto* growing = dyn_cast<SCEVAddRecExpr>(value); value = growing->getStart()) {
      auto* step = dyn_cast<SCEVConstant>(growing->getStepRecurrence(evolution_));
      const SCEV* count = count_of(growing->getLoop());
      if (!growing->isAffine() || !step || !step->getAPInt().isStrictlyPositive() ||
          step->getAPInt().getActiveBits() > kStepBits || isa<SCEVCouldNotCompute>(count) ||
          evolution_.getTypeSizeInBits(count->getType()) > 64 ||
          evolution_.getUnsignedRangeMax(count).getActiveBits() > kCountBits || ++loops > 8)
        return false;
      // A loop over a run's pieces has one or two: limits for two are computed before all runs.
      if (evolution_.getUnsignedRangeMax(count).isOne()) count = evolution_.getOne(count->getType());
      growth =
          evolution_.getAddExpr(growth, evolution_.getMulExpr(evolution_.getNoopOrZeroExtend(count, number), step));
    }
    if (loops == 0 || !is_known(value) || !is_known(growth)) return false;
    below_.push_back({value, growth, limit, unless});
    return true;
  }

  Instruction& place_;
  ScalarEvolution& evolution_;
  DominatorTree& dominators_;
  LoopInfo& loops_;
  function_ref<bool(const Loop&)> may_assume_;
  SCEVExpander expander_;
  MapVector<const Loop*, std::unique_ptr<PredicatedScalarEvolution>> predicated_;
  SmallVector<std::pair<Known, Known>> known_;  // the first one, unless the second one
  SmallVector<Comparison> comparisons_;
  SmallVector<Below> below_;
};

void answer(BranchInst& branch) {
  branch.setCondition(ConstantInt::getBool(branch.getContext(), *likely_successor(branch) == 0));
}

// The questions of the loop's own blocks; those in loops over lanes are not among them.
SmallVector<BranchInst*> questions_of(const Loop& loop, const LoopInfo& loops) {
  SmallVector<BranchInst*> questions;
  for (BasicBlock* block : loop.blocks())
    if (auto* branch = dyn_cast<BranchInst>(block->getTerminator());
        branch && loops.getLoopFor(block) == &loop && likely_successor(*branch))
      questions.push_back(branch);
  return questions;
}

class LoopVersioning {
 public:
  LoopVersioning(Function& function, FunctionAnalysisManager& analyses, unsigned fewest)
      : function_(function),
        fewest_(fewest),
        loops_(analyses.getResult<LoopAnalysis>(function)),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(function)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(function)) {}

  bool run() {
    bool has_changed = false;
    // Inner ones first; what surrounds one that is there twice stays as it is.
    SmallVector<Loop*> order = loops_.getLoopsInPreorder();
    DenseSet<Loop*> doubled;
    for (Loop* loop : reverse(order)) {
      if (!any_of(loop->getSubLoops(), [&](Loop* inner) { return doubled.contains(inner); }) && !version(*loop))
        continue;
      doubled.insert(loop);
      has_changed = true;
    }
    return has_changed;
  }

 private:
  bool version(Loop& loop) {
    SmallVector<BranchInst*> questions = questions_of(loop, loops_);
    size_t size = 0;
    for (const BasicBlock* block : loop.blocks()) size += block->size();
    if (questions.size() < fewest_ || size > kMostInstructions) return false;
    simplifyLoop(&loop, &dominators_, &loops_, &evolution_, nullptr, nullptr, /*PreserveLCSSA=*/false);
    formLCSSARecursively(loop, dominators_, &loops_, &evolution_);
    if (!loop.isLoopSimplifyForm() || !loop.isSafeToClone()) return false;
    auto is_this = [&](const Loop& other) { return &other == &loop; };
    Conditions conditions(*loop.getLoopPreheader()->getTerminator(), evolution_, dominators_, loops_, is_this);
    for (BranchInst* branch : questions)
      if (!conditions.require(branch->getCondition(), *likely_successor(*branch) == 0)) return false;
    double_loop(loop, conditions.ask());
    for (BranchInst* branch : questions) answer(*branch);
    evolution_.forgetTopmostLoop(&loop);
    return true;
  }

  // As it is where the condition does not hold, behind the one that is to become simpler.
  void double_loop(Loop& loop, Value* condition) {
    BasicBlock* before = loop.getLoopPreheader();
    BasicBlock* preheader = SplitBlock(before, before->getTerminator(), &dominators_, &loops_);
    SmallVector<BasicBlock*> exits;
    loop.getUniqueExitBlocks(exits);
    ValueToValueMapTy map;
    SmallVector<BasicBlock*> blocks;
    Loop* other = cloneLoopWithPreheader(preheader, before, &loop, map, ".slow", &loops_, &dominators_, blocks);
    remapInstructionsInBlocks(blocks, map);
    ReplaceInstWithInst(before->getTerminator(), BranchInst::Create(preheader, other->getLoopPreheader(), condition));
    before->getTerminator()->setMetadata(LLVMContext::MD_prof, likely_first(function_.getContext()));
    for (BasicBlock* exit : exits) {
      for (PHINode& phi : exit->phis())
        for (unsigned i = 0, count = phi.getNumIncomingValues(); i < count; ++i) {
          auto cloned = map.find(phi.getIncomingBlock(i));
          if (cloned == map.end()) continue;
          Value* value = phi.getIncomingValue(i);
          if (auto mapped = map.find(value); mapped != map.end()) value = mapped->second;
          phi.addIncoming(value, cast<BasicBlock>(cloned->second));
        }
    }
    dominators_.recalculate(function_);
  }

  Function& function_;
  unsigned fewest_;
  LoopInfo& loops_;
  DominatorTree& dominators_;
  ScalarEvolution& evolution_;
};

}  // namespace

PreservedAnalyses LoopVersioningPass::run(Function& function, FunctionAnalysisManager& analyses) {
  return LoopVersioning(function, analyses, fewest).run() ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

namespace {

// Whether nothing that is computed in the loop is wanted behind it.
bool keeps_its_values(const Loop& loop) {
  for (const BasicBlock* block : loop.blocks())
    for (const Instruction& instruction : *block)
      for (const User* user : instruction.users())
        if (!loop.contains(cast<Instruction>(user))) return false;
  return true;
}

}  // namespace

PreservedAnalyses CoarsenedLoopVersioningPass::run(Function& function, FunctionAnalysisManager& analyses) {
  auto& loops = analyses.getResult<LoopAnalysis>(function);
  for (Loop* runs : loops) {
    const CoarsenedLoop pieces = coarsened_loop_of(*runs);
    BasicBlock* next = pieces.loop ? pieces.loop->getUniqueExitBlock() : nullptr;
    if (!next || !next->phis().empty() || !keeps_its_values(*pieces.loop)) continue;
    SmallVector<BranchInst*> questions = questions_of(*pieces.loop, loops);
    auto& evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
    const auto& always = analyses.getResult<PostDominatorTreeAnalysis>(function);
    auto never = [](const Loop&) { return false; };
    Conditions conditions(*pieces.insertion_point(), evolution, analyses.getResult<DominatorTreeAnalysis>(function),
                          loops, never);
    // Others stay: those of which it is not known before, and those that are not always asked.
    erase_if(questions, [&](BranchInst* branch) {
      return !always.dominates(branch->getParent(), pieces.loop->getHeader()) ||
             !conditions.require(branch->getCondition(), *likely_successor(*branch) == 0);
    });
    if (questions.empty()) continue;
    Value* condition = conditions.ask();
    auto* from = cast<BranchInst>(pieces.insertion_point());
    BasicBlock* before = from->getParent();
    BasicBlock* rows = SplitBlock(before, from);
    auto block = [&](const char* name) { return BasicBlock::Create(function.getContext(), name, &function); };
    BasicBlock *first = block("apart"), *second = block("apart.second");
    ReplaceInstWithInst(before->getTerminator(), BranchInst::Create(rows, first, condition));
    before->getTerminator()->setMetadata(LLVMContext::MD_prof, likely_first(function.getContext()));
    IRBuilder<> builder(first);
    auto call = [&](unsigned piece) {
      Value* frame = builder.CreateIntToPtr(builder.getInt64(piece), builder.getPtrTy());
      builder.CreateCall(&simdgroup,
                         {function.getArg(0), function.getArg(1), frame, pieces.x, builder.getInt32(kLanes)});
    };
    call(0);
    Value* left = builder.CreateSub(function.getArg(2), pieces.x);
    builder.CreateCondBr(builder.CreateICmpULT(left, builder.getInt32(kCoarsenedThreads)), next, second);
    builder.SetInsertPoint(second);
    call(kLanes);
    builder.CreateBr(next);
    for (BranchInst* branch : questions) answer(*branch);
    return PreservedAnalyses::none();
  }
  return PreservedAnalyses::all();
}

namespace {

// Whether it reads what a launch says of its arguments: `launch`, the function's first parameter, begins with where
// that is.
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

// Limits must be known where they are asked about.
void read_arguments_first(Function& function) {
  BasicBlock& entry = function.getEntryBlock();
  Instruction* place = &*find_if(entry, [](const Instruction& i) { return i.isTerminator() || i.mayWriteToMemory(); });
  for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function))
    for (Instruction& instruction : make_early_inc_range(*block)) {
      auto* load = dyn_cast<LoadInst>(&instruction);
      if (!load || block == &entry || !reads_arguments(*load, *function.getArg(0))) continue;
      APInt offset(64, 0);
      Value* base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(load->getDataLayout(), offset, true);
      IRBuilder<> builder(place);
      load->setOperand(0, builder.CreatePtrAdd(base, builder.getInt(offset)));
      load->moveBefore(place);
    }
}

// Whether nothing will be left of the loop, nor of those around it.
bool is_unrolled(const Loop& loop) {
  for (const Loop* around = &loop; around; around = around->getParentLoop())
    if (!findOptionMDForLoop(around, "llvm.loop.unroll.full")) return false;
  return true;
}

}  // namespace

PreservedAnalyses ThreadgroupVersioningPass::run(Function& function, FunctionAnalysisManager& analyses) {
  read_arguments_first(function);
  // Before the function writes anything.
  BasicBlock& entry = function.getEntryBlock();
  auto begins = find_if(entry, [](const Instruction& i) { return i.isTerminator() || i.mayWriteToMemory(); });
  auto& loops = analyses.getResult<LoopAnalysis>(function);
  auto& dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  if (!begins->isTerminator()) SplitBlock(&entry, &*begins, &dominators, &loops);
  auto& evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  auto answer_by = [&](Conditions& conditions) {
    SmallVector<BranchInst*> answered;
    for (BasicBlock& block : function)
      if (auto* branch = dyn_cast<BranchInst>(block.getTerminator()); branch && likely_successor(*branch))
        if (conditions.require(branch->getCondition(), *likely_successor(*branch) == 0)) answered.push_back(branch);
    return answered;
  };
  auto never = [](const Loop&) { return false; };
  Conditions certain(*entry.getTerminator(), evolution, dominators, loops, never);
  bool is_row_anyway = !answer_by(certain).empty();
  Conditions conditions(*entry.getTerminator(), evolution, dominators, loops, is_unrolled);
  SmallVector<BranchInst*> answered = answer_by(conditions);
  if (answered.empty()) return PreservedAnalyses::none();

  ValueToValueMapTy map;
  Function* apart = CloneFunction(&function, map);
  apart->setName(function.getName() + kSlowSuffix);
  apart->setLinkage(GlobalValue::InternalLinkage);
  // What wraps or goes over an array's end does so in few threadgroups, where its place depends on the threadgroup's.
  if (!is_row_anyway) forget_unrolling(*apart);
  Value* condition = conditions.ask();
  auto* from = cast<BranchInst>(entry.getTerminator());
  BasicBlock* rest = SplitBlock(&entry, from);
  BasicBlock* other = BasicBlock::Create(function.getContext(), "apart", &function);
  IRBuilder<> builder(other);
  SmallVector<Value*> arguments;
  for (Argument& argument : function.args()) arguments.push_back(&argument);
  builder.CreateCall(apart, arguments);
  builder.CreateRetVoid();
  ReplaceInstWithInst(entry.getTerminator(), BranchInst::Create(rest, other, condition));
  for (BranchInst* branch : answered) answer(*branch);
  return PreservedAnalyses::none();
}

}  // namespace kiln
