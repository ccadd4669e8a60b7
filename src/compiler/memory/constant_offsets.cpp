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

// Nested conjunctions that a condition is part of.
constexpr unsigned kMostConjunctions = 8;

// Constants and element sizes, whose product is far below 64 bits.
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
    Value *sum = nullptr, *base_index = nullptr;
    const APInt* addend = nullptr;
    if (address.getNumIndices() != 1 || address.getType()->isVectorTy() ||
        !match(address.getOperand(1), m_ZExt(m_Value(sum))))
      return false;
    uint64_t size = address.getDataLayout().getTypeAllocSize(address.getSourceElementType()).getFixedValue();
    if (size > kLargest || !is_sum(*sum, base_index, addend, *address.getParent())) return false;
    IRBuilder<> builder(&address);
    Value* index = builder.CreateZExt(base_index, address.getOperand(1)->getType());
    Value* base_address = builder.CreateGEP(address.getSourceElementType(), address.getPointerOperand(), index);
    address.replaceAllUsesWith(
        builder.CreateGEP(builder.getInt8Ty(), base_address, builder.getInt64(addend->getZExtValue() * size)));
    address.eraseFromParent();
    return true;
  }

  // Whether `sum` adds a constant to a value and does not wrap if computed in the block.
  bool is_sum(Value& sum, Value*& base_index, const APInt*& addend, const BasicBlock& block) const {
    if (auto* both = dyn_cast<PossiblyDisjointInst>(&sum); both && !both->isDisjoint()) return false;
    if (!match(&sum,
               m_CombineOr(m_Or(m_Value(base_index), m_APInt(addend)), m_Add(m_Value(base_index), m_APInt(addend)))) ||
        addend->getActiveBits() > 64 || addend->ugt(kLargest))
      return false;
    auto& operation = cast<BinaryOperator>(sum);
    if (operation.getOpcode() == Instruction::Or || operation.hasNoUnsignedWrap()) return true;
    // The first value that wraps.
    return is_below(*base_index, -*addend, block);
  }

  // Whether a branch whose edge dominates the block has checked it.
  bool is_below(const Value& value, const APInt& limit, const BasicBlock& block) const {
    return any_of(value.users(), [&](const User* user) {
      const APInt* checked_limit = nullptr;
      return match(user, m_SpecificICmp(ICmpInst::ICMP_ULT, m_Specific(&value), m_APInt(checked_limit))) &&
             checked_limit->ule(limit) && holds(*user, block, 0);
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
