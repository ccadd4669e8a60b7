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
#include "compiler/ir/simdgroup.h"

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

// From the lowest access of an array to the end of the highest one, in bytes.
constexpr uint64_t kLongestReach = uint64_t{1} << 40;

class FunctionVersioning {
 public:
  FunctionVersioning(Function& group, FunctionAnalysisManager& analyses)
      : group_(group),
        place_(*last_of_start(group)),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(group)),
        behind_(analyses.getResult<PostDominatorTreeAnalysis>(group)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(group)) {}

  Function* make(unsigned fewest) {
    // What is asked in one case only may be answered otherwise in the other, as that of an access which a condition
    // keeps inside.
    for (BasicBlock& block : group_)
      if (auto* branch = dyn_cast<BranchInst>(block.getTerminator());
          branch && likely_successor(*branch) && behind_.dominates(&block, place_.getParent()) &&
          require(branch->getCondition(), *likely_successor(*branch) == 0))
        answered_.push_back(branch);
    return answered_.size() >= fewest ? clone() : nullptr;
  }

 private:
  struct Known {
    Value* condition;
    bool value;
  };

  // That of numbers which are a known distance apart each is below the limit by more than its reach. Of the lowest one
  // it is asked, with the farthest reach: then none wraps on the way from it.
  struct Range {
    Value* lowest;
    const SCEV* number;  // that
    Value* limit;
    const SCEV* limit_number;
    uint64_t reach;
  };

  // Of what runs first and once: nothing is written there, so that it can be left for other code.
  static Instruction* last_of_start(Function& function) {
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
    SmallVector<Known> known;
    if (!scalarize(condition, value, known)) return false;
    for (const Known& part : known)
      if (!add_range(part)) known_.push_back(part);
    return true;
  }

  bool scalarize(Value* condition, bool value, SmallVectorImpl<Known>& known) {
    Value *one, *other;
    if (match(condition, m_Not(m_Value(one)))) return scalarize(one, !value, known);
    if (value ? match(condition, m_LogicalAnd(m_Value(one), m_Value(other)))
              : match(condition, m_LogicalOr(m_Value(one), m_Value(other))))
      return scalarize(one, value, known) && scalarize(other, value, known);
    known.push_back({condition, value});
    return can_be_known(condition);
  }

  // From numbers of the start alone, without memory.
  bool can_be_known(Value* value) {
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || dominators_.dominates(instruction, &place_)) return true;
    auto [found, is_new] = can_be_known_.try_emplace(instruction, false);
    if (!is_new) return found->second;
    // Nor may it be poison where the code would not have come to it.
    bool is_arithmetic = !isa<PHINode>(instruction) && !instruction->mayReadOrWriteMemory() &&
                         isSafeToSpeculativelyExecute(instruction) &&
                         !canCreatePoison(cast<Operator>(instruction), /*ConsiderFlagsAndMetadata=*/false);
    return is_arithmetic && all_of(instruction->operands(), [&](Use& use) { return can_be_known(use.get()); }) &&
           (can_be_known_[instruction] = true);
  }

  bool add_range(const Known& known) {
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
    const SCEV *here = evolution_.getSCEV(number), *limit_number = evolution_.getSCEV(limit);
    for (Range& range : ranges_) {
      if (range.limit_number != limit_number) continue;
      auto* distance = dyn_cast<SCEVConstant>(evolution_.getMinusSCEV(here, range.number));
      if (!distance || distance->getAPInt().abs().ugt(kLongestReach)) continue;
      int64_t behind = distance->getAPInt().getSExtValue();
      uint64_t far = static_cast<uint64_t>(std::abs(behind));
      if (behind < 0) {
        range.reach = std::max(reach, range.reach + far);
        range.lowest = number;
        range.number = here;
      } else {
        range.reach = std::max(range.reach, reach + far);
      }
      return true;
    }
    ranges_.push_back({number, here, limit, limit_number, reach});
    return true;
  }

  Function* clone() {
    LLVMContext& context = group_.getContext();
    SmallVector<Type*> types;
    for (Argument& argument : group_.args()) types.push_back(argument.getType());
    auto* whole = Function::Create(FunctionType::get(Type::getInt1Ty(context), types, false),
                                   GlobalValue::InternalLinkage, group_.getName() + ".whole", group_.getParent());
    for (auto [argument, copy] : zip(group_.args(), whole->args())) copies_[&argument] = &copy;
    SmallVector<ReturnInst*> returns;
    CloneFunctionInto(whole, &group_, copies_, CloneFunctionChangeType::LocalChangesOnly, returns);
    for (ReturnInst* from : returns)
      ReplaceInstWithInst(from, ReturnInst::Create(context, ConstantInt::getTrue(context)));
    copy_address_ = cast<Instruction>(copies_[&place_]);
    IRBuilder<> builder(copy_address_);
    Value* all = builder.getTrue();
    auto add = [&](Value* part) { all = builder.CreateAnd(all, part); };
    for (auto [condition, value] : known_) {
      Value* part = at_start(condition);
      add(value ? part : builder.CreateNot(part));
    }
    for (const Range& range : ranges_) {
      Value *lowest = at_start(range.lowest), *limit = at_start(range.limit);
      Value* least = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, limit, builder.getInt64(range.reach));
      add(builder.CreateICmpULT(lowest, least));
    }
    for (BranchInst* branch : answered_) {
      auto* copy = cast<BranchInst>(copies_[branch]);
      copy->setCondition(ConstantInt::getBool(context, *likely_successor(*branch) == 0));
    }
    BasicBlock* start = copy_address_->getParent();
    BasicBlock* rest = SplitBlock(start, copy_address_);
    BasicBlock* other = BasicBlock::Create(context, "other", whole);
    ReturnInst::Create(context, ConstantInt::getFalse(context), other);
    ReplaceInstWithInst(start->getTerminator(), BranchInst::Create(rest, other, all));
    start->getTerminator()->setMetadata(LLVMContext::MD_prof, likely_first(context));
    Argument* lanes = whole->getArg(static_cast<unsigned>(whole->arg_size()) - 1);
    lanes->replaceAllUsesWith(ConstantInt::get(lanes->getType(), kLanes));
    return whole;
  }

  // The copy of a value, computed at the start.
  Value* at_start(Value* value) {
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction) return isa<Argument>(value) ? static_cast<Value*>(copies_[value]) : value;
    auto* copy = cast<Instruction>(copies_[value]);
    if (dominators_.dominates(instruction, &place_) || !moved_.insert(instruction).second) return copy;
    for (Use& use : instruction->operands()) at_start(use.get());
    copy->moveBefore(copy_address_);
    // They hold where it was.
    copy->dropPoisonGeneratingFlags();
    return copy;
  }

  Function& group_;
  Instruction& place_;
  DominatorTree& dominators_;
  PostDominatorTree& behind_;
  ScalarEvolution& evolution_;
  DenseMap<Instruction*, bool> can_be_known_;
  SmallVector<BranchInst*> answered_;
  SmallVector<Known> known_;
  SmallVector<Range> ranges_;
  ValueToValueMapTy copies_;
  Instruction* copy_address_ = nullptr;
  DenseSet<Instruction*> moved_;
};

}  // namespace

PreservedAnalyses FunctionVersioningPass::run(Function& group, FunctionAnalysisManager& analyses) {
  auto asks = [](BasicBlock& block) {
    auto* branch = dyn_cast<BranchInst>(block.getTerminator());
    return branch && likely_successor(*branch);
  };
  if (static_cast<size_t>(count_if(group, asks)) >= fewest) whole = FunctionVersioning(group, analyses).make(fewest);
  return PreservedAnalyses::all();
}

}  // namespace kiln
