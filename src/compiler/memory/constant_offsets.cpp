#include "compiler/memory/constant_offsets.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

#include <cstdint>

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

// Of conjunctions that a condition is part of.
constexpr unsigned kMostConjunctions = 8;

// Numbers, and elements' sizes, whose product is far from 64 bits.
constexpr uint64_t kLargest = uint64_t{1} << 30;

class ConstantOffsets {
 public:
  ConstantOffsets(Function& function, DominatorTree& dominators) : function_(function), dominators_(dominators) {}

  bool run() {
    bool has_changed = false;
    for (Instruction& instruction : make_early_inc_range(instructions(function_)))
      if (auto* address = dyn_cast<GetElementPtrInst>(&instruction)) has_changed |= split(*address);
    return has_changed;
  }

 private:
  bool split(GetElementPtrInst& address) {
    Value *sum = nullptr, *rest = nullptr;
    const APInt* number = nullptr;
    if (address.getNumIndices() != 1 || address.getType()->isVectorTy() ||
        !match(address.getOperand(1), m_ZExt(m_Value(sum))))
      return false;
    uint64_t size = address.getDataLayout().getTypeAllocSize(address.getSourceElementType()).getFixedValue();
    if (size > kLargest || !is_sum(*sum, rest, number, *address.getParent())) return false;
    IRBuilder<> builder(&address);
    Value* index = builder.CreateZExt(rest, address.getOperand(1)->getType());
    Value* other = builder.CreateGEP(address.getSourceElementType(), address.getPointerOperand(), index);
    address.replaceAllUsesWith(
        builder.CreateGEP(builder.getInt8Ty(), other, builder.getInt64(number->getZExtValue() * size)));
    address.eraseFromParent();
    return true;
  }

  // Whether it is one of a value and a number that does not wrap, in a block where it is wanted.
  bool is_sum(Value& sum, Value*& rest, const APInt*& number, const BasicBlock& block) const {
    if (auto* both = dyn_cast<PossiblyDisjointInst>(&sum); both && !both->isDisjoint()) return false;
    if (!match(&sum, m_CombineOr(m_Or(m_Value(rest), m_APInt(number)), m_Add(m_Value(rest), m_APInt(number)))) ||
        number->getActiveBits() > 64 || number->ugt(kLargest))
      return false;
    auto& operation = cast<BinaryOperator>(sum);
    if (operation.getOpcode() == Instruction::Or || operation.hasNoUnsignedWrap()) return true;
    // The first value that wraps.
    return is_below(*rest, -*number, block);
  }

  // Whether a branch that leads to the block has asked for it.
  bool is_below(const Value& value, const APInt& limit, const BasicBlock& block) const {
    return any_of(value.users(), [&](const User* user) {
      const APInt* asked = nullptr;
      return match(user, m_SpecificICmp(ICmpInst::ICMP_ULT, m_Specific(&value), m_APInt(asked))) && asked->ule(limit) &&
             holds(*user, block, 0);
    });
  }

  bool holds(const Value& condition, const BasicBlock& block, unsigned conjunctions) const {
    return conjunctions <= kMostConjunctions && any_of(condition.users(), [&](const User* user) {
             if (auto* branch = dyn_cast<BranchInst>(user))
               return branch->getSuccessor(0) != branch->getSuccessor(1) &&
                      dominators_.dominates(BasicBlockEdge(branch->getParent(), branch->getSuccessor(0)), &block);
             return match(user, m_LogicalAnd(m_Value(), m_Value())) && holds(*user, block, conjunctions + 1);
           });
  }

  Function& function_;
  DominatorTree& dominators_;
};

}  // namespace

PreservedAnalyses ConstantOffsetsPass::run(Function& function, FunctionAnalysisManager& analyses) {
  bool has_changed = ConstantOffsets(function, analyses.getResult<DominatorTreeAnalysis>(function)).run();
  return has_changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace kiln
