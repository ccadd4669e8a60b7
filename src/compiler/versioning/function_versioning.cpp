#include "compiler/versioning/function_versioning.h"

#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "compiler/ir/likely.h"
#include "compiler/ir/remarks.h"
#include "compiler/ir/simdgroup.h"

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

// Bytes from the lowest access to an array to the end of the highest one.
constexpr uint64_t kLongestReach = uint64_t{1} << 40;

constexpr const char* kFunctionVersioning = "function-versioning";

class FunctionVersioning {
 public:
  FunctionVersioning(Function& group, FunctionAnalysisManager& analyses)
      : group_(group),
        insertion_point_(*end_of_prologue(group)),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(group)),
        post_dominators_(analyses.getResult<PostDominatorTreeAnalysis>(group)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(group)) {}

  Function* make(unsigned fewest) {
    // Only checks that always execute: a check under a condition may fail where the condition is false, e.g. of an
    // access which that condition keeps in bounds.
    for (BasicBlock& block : group_) {
      auto* branch = dyn_cast<BranchInst>(block.getTerminator());
      if (!branch || !likely_successor(*branch)) continue;
      if (!post_dominators_.dominates(&block, insertion_point_.getParent()))
        remark(kFunctionVersioning, *branch, "this check stays: it is made under a condition");
      else if (!require(branch->getCondition(), *likely_successor(*branch) == 0))
        remark(kFunctionVersioning, *branch, "this check stays: it depends on memory, on a loop or on a branch");
      else
        hoisted_.push_back(branch);
    }
    if (hoisted_.size() >= fewest) return clone();
    remark(kFunctionVersioning, group_, "not this kernel: ", hoisted_.size(),
           " of its checks can be made first, and fewer than ", fewest, " are not worth a second function");
    return nullptr;
  }

 private:
  struct Requirement {
    Value* condition;
    bool value;
  };

  // Indices at known distances of which each is below the limit by more than its reach. One check covers them: that of
  // the lowest index, with the farthest reach. Then no index between them wraps.
  struct Range {
    Value* lowest;
    const SCEV* number;  // of `lowest`
    Value* limit;
    const SCEV* limit_number;
    uint64_t reach;
  };

  // The end of the code that executes first and exactly once. It writes nothing, so the function can still be abandoned
  // there for the other version.
  static Instruction* end_of_prologue(Function& function) {
    for (BasicBlock* block = &function.getEntryBlock();;) {
      for (Instruction& instruction : *block)
        if (instruction.mayHaveSideEffects() || instruction.isTerminator()) {
          auto* branch = dyn_cast<BranchInst>(&instruction);
          BasicBlock* next = branch && branch->isUnconditional() ? branch->getSuccessor(0) : nullptr;
          if (!next || !next->getSinglePredecessor()) return &instruction;
          block = next;
          break;
        }
    }
  }

  bool require(Value* condition, bool value) {
    SmallVector<Requirement> known;
    if (!decompose(condition, value, known)) return false;
    for (const Requirement& part : known)
      if (!add_range(part)) requirements_.push_back(part);
    return true;
  }

  bool decompose(Value* condition, bool value, SmallVectorImpl<Requirement>& known) {
    Value *one, *other;
    if (match(condition, m_Not(m_Value(one)))) return decompose(one, !value, known);
    if (value ? match(condition, m_LogicalAnd(m_Value(one), m_Value(other)))
              : match(condition, m_LogicalOr(m_Value(one), m_Value(other))))
      return decompose(one, value, known) && decompose(other, value, known);
    known.push_back({condition, value});
    return can_be_hoisted(condition);
  }

  // Whether the value can be computed from values available at the start, without memory accesses.
  bool can_be_hoisted(Value* value) {
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || dominators_.dominates(instruction, &insertion_point_)) return true;
    auto [found, is_new] = can_be_hoisted_.try_emplace(instruction, false);
    if (!is_new) return found->second;
    // It must not be poison either, where the original code would not have reached it.
    bool is_arithmetic = !isa<PHINode>(instruction) && !instruction->mayReadOrWriteMemory() &&
                         isSafeToSpeculativelyExecute(instruction) &&
                         !canCreatePoison(cast<Operator>(instruction), /*ConsiderFlagsAndMetadata=*/false);
    return is_arithmetic && all_of(instruction->operands(), [&](Use& use) { return can_be_hoisted(use.get()); }) &&
           (can_be_hoisted_[instruction] = true);
  }

  bool add_range(const Requirement& known) {
    auto* comparison = dyn_cast<ICmpInst>(known.condition);
    if (!comparison || !known.value || comparison->getPredicate() != ICmpInst::ICMP_ULT) return false;
    Value *number = comparison->getOperand(0), *limit = comparison->getOperand(1);
    uint64_t reach = 0, less;
    Value* from;
    while (match(limit, m_Intrinsic<Intrinsic::usub_sat>(m_Value(from), m_ConstantInt(less))) &&
           less <= kLongestReach) {
      reach += less;
      limit = from;
    }
    if (!number->getType()->isIntegerTy(64) || reach > kLongestReach) return false;
    const SCEV *scev = evolution_.getSCEV(number), *limit_number = evolution_.getSCEV(limit);
    for (Range& range : ranges_) {
      if (range.limit_number != limit_number) continue;
      auto* distance = dyn_cast<SCEVConstant>(evolution_.getMinusSCEV(scev, range.number));
      if (!distance || distance->getAPInt().abs().ugt(kLongestReach)) continue;
      int64_t bytes = distance->getAPInt().getSExtValue();
      uint64_t gap = static_cast<uint64_t>(std::abs(bytes));
      if (bytes < 0) {
        range.reach = std::max(reach, range.reach + gap);
        range.lowest = number;
        range.number = scev;
      } else {
        range.reach = std::max(range.reach, reach + gap);
      }
      return true;
    }
    ranges_.push_back({number, scev, limit, limit_number, reach});
    return true;
  }

  Function* clone() {
    LLVMContext& context = group_.getContext();
    SmallVector<Type*> types;
    for (Argument& argument : group_.args()) types.push_back(argument.getType());
    auto* fast = Function::Create(FunctionType::get(Type::getInt1Ty(context), types, false),
                                  GlobalValue::InternalLinkage, group_.getName() + ".whole", group_.getParent());
    for (auto [argument, copy] : zip(group_.args(), fast->args())) copies_[&argument] = &copy;
    SmallVector<ReturnInst*> returns;
    CloneFunctionInto(fast, &group_, copies_, CloneFunctionChangeType::LocalChangesOnly, returns);
    fast->setDSOLocal(true);  // whatever the original is, which it has copied that from
    for (ReturnInst* from : returns)
      ReplaceInstWithInst(from, ReturnInst::Create(context, ConstantInt::getTrue(context)));
    cloned_insertion_point_ = cast<Instruction>(copies_[&insertion_point_]);
    IRBuilder<> builder(cloned_insertion_point_);
    Value* all = builder.getTrue();
    auto add = [&](Value* part) { all = builder.CreateAnd(all, part); };
    for (auto [condition, value] : requirements_) {
      Value* part = hoist(condition);
      add(value ? part : builder.CreateNot(part));
    }
    for (const Range& range : ranges_) {
      Value *lowest = hoist(range.lowest), *limit = hoist(range.limit);
      Value* reduced_limit = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, limit, builder.getInt64(range.reach));
      add(builder.CreateICmpULT(lowest, reduced_limit));
    }
    for (BranchInst* branch : hoisted_) {
      auto* copy = cast<BranchInst>(copies_[branch]);
      copy->setCondition(ConstantInt::getBool(context, *likely_successor(*branch) == 0));
    }
    BasicBlock* start = cloned_insertion_point_->getParent();
    BasicBlock* rest = SplitBlock(start, cloned_insertion_point_);
    BasicBlock* other = BasicBlock::Create(context, "other", fast);
    ReturnInst::Create(context, ConstantInt::getFalse(context), other);
    ReplaceInstWithInst(start->getTerminator(), BranchInst::Create(rest, other, all));
    mark_likely(cast<BranchInst>(*start->getTerminator()));
    Argument* lanes = fast->getArg(static_cast<unsigned>(fast->arg_size()) - 1);
    lanes->replaceAllUsesWith(ConstantInt::get(lanes->getType(), kLanes));
    return fast;
  }

  // The clone of a value, hoisted to the start.
  Value* hoist(Value* value) {
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction) return isa<Argument>(value) ? static_cast<Value*>(copies_[value]) : value;
    auto* copy = cast<Instruction>(copies_[value]);
    if (dominators_.dominates(instruction, &insertion_point_) || !moved_.insert(instruction).second) return copy;
    for (Use& use : instruction->operands()) hoist(use.get());
    copy->moveBefore(cloned_insertion_point_);
    // The flags hold only at the original position.
    copy->dropPoisonGeneratingFlags();
    return copy;
  }

  Function& group_;
  Instruction& insertion_point_;
  DominatorTree& dominators_;
  PostDominatorTree& post_dominators_;
  ScalarEvolution& evolution_;
  DenseMap<Instruction*, bool> can_be_hoisted_;
  SmallVector<BranchInst*> hoisted_;
  SmallVector<Requirement> requirements_;
  SmallVector<Range> ranges_;
  ValueToValueMapTy copies_;
  Instruction* cloned_insertion_point_ = nullptr;
  DenseSet<Instruction*> moved_;
};

}  // namespace

Function* make_fast_version(Function& group, FunctionAnalysisManager& analyses, unsigned fewest) {
  auto is_check = [](BasicBlock& block) {
    auto* branch = dyn_cast<BranchInst>(block.getTerminator());
    return branch && likely_successor(*branch);
  };
  const auto checks = static_cast<size_t>(count_if(group, is_check));
  if (checks >= fewest) return FunctionVersioning(group, analyses).make(fewest);
  if (checks > 0)
    remark(kFunctionVersioning, group, "not this kernel: it has ", checks, checks == 1 ? " check" : " checks",
           ", and fewer than ", fewest, " are not worth a second function");
  return nullptr;
}

}  // namespace kiln
