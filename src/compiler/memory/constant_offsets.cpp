#include "compiler/memory/constant_offsets.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

#include <cstdint>
#include <optional>

#include "compiler/ir/constant_sums.h"

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

// Nested conjunctions that a condition is part of.
constexpr unsigned kMostConjunctions = 8;

// Sums within sums.
constexpr unsigned kMostAddends = 8;

// Constants, their negatives too, and element sizes. Distances are computed modulo 2^64, as addresses are.
constexpr uint64_t kLargest = uint64_t{1} << 30;

class ConstantOffsets {
 public:
  ConstantOffsets(Function& function, DominatorTree& dominators)
      : function_(function), layout_(function.getDataLayout()), dominators_(dominators) {}

  bool run() {
    bool has_changed = false;
    for (Instruction& instruction : make_early_inc_range(instructions(function_)))
      if (auto* address = dyn_cast<GetElementPtrInst>(&instruction)) has_changed |= split(*address);
    return has_changed;
  }

 private:
  bool split(GetElementPtrInst& address) {
    if (address.getType()->isVectorTy()) return false;
    const unsigned last = address.getNumOperands() - 1;
    if (!all_of(drop_end(address.indices()), [](Value* index) { return match(index, m_Zero()); })) return false;
    gep_type_iterator type = gep_type_begin(address);
    std::advance(type, last - 1);
    if (type.isStruct()) return false;
    const uint64_t size = type.getSequentialElementStride(layout_).getFixedValue();
    Value* index = nullptr;
    const bool is_signed = match(address.getOperand(last), m_SExt(m_Value(index)));
    if (!is_signed && !match(address.getOperand(last), m_ZExt(m_Value(index)))) return false;
    if (size > kLargest) return false;
    uint64_t distance = 0;
    for (unsigned i = 0; i < kMostAddends; ++i) {
      std::optional<ConstantSum> sum = constant_sum_of(*index);
      if (!sum || !is_exact(*sum, is_signed, *address.getParent())) break;
      distance += is_signed ? static_cast<uint64_t>(sum->addend->getSExtValue()) : sum->addend->getZExtValue();
      index = sum->base;
    }
    if (distance == 0) return false;
    IRBuilder<> builder(&address);
    Type* wide = address.getOperand(last)->getType();
    SmallVector<Value*> indices(address.indices());
    indices.back() = is_signed ? builder.CreateSExt(index, wide) : builder.CreateZExt(index, wide);
    Value* base_address = builder.CreateGEP(address.getSourceElementType(), address.getPointerOperand(), indices);
    address.replaceAllUsesWith(builder.CreatePtrAdd(base_address, builder.getInt64(distance * size)));
    address.eraseFromParent();
    return true;
  }

  // Whether the sum does not wrap if computed in the block.
  bool is_exact(const ConstantSum& sum, bool is_signed, const BasicBlock& block) const {
    if (sum.addend->getSignificantBits() > 64 || sum.addend->abs().ugt(kLargest)) return false;
    if (sum.never_wraps(is_signed, layout_)) return true;
    // The first value that wraps.
    return !is_signed && sum.operation->getOpcode() == Instruction::Add && is_below(*sum.base, -*sum.addend, block);
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
  const DataLayout& layout_;
  DominatorTree& dominators_;
};

}  // namespace

PreservedAnalyses ConstantOffsetsPass::run(Function& function, FunctionAnalysisManager& analyses) {
  bool has_changed = ConstantOffsets(function, analyses.getResult<DominatorTreeAnalysis>(function)).run();
  return has_changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace kiln
