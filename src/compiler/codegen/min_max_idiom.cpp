#include "compiler/codegen/min_max_idiom.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

#include <optional>

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

// Collectives move values as 32-bit integers.
Value* without_casts(Value* value) {
  while (auto* cast = dyn_cast<BitCastInst>(value)) value = cast->getOperand(0);
  return value;
}

bool has_equal_bits(Value* one, Value* other) { return without_casts(one) == without_casts(other); }

Type* as_floats(Type* type) {
  if (type->isFPOrFPVectorTy()) return type;
  Type* scalar = type->getScalarType()->isIntegerTy(32)   ? Type::getFloatTy(type->getContext())
                 : type->getScalarType()->isIntegerTy(64) ? Type::getDoubleTy(type->getContext())
                                                          : nullptr;
  auto* vector = dyn_cast<FixedVectorType>(type);
  return scalar && vector ? FixedVectorType::get(scalar, vector->getNumElements()) : scalar;
}

bool is_unordered_with_itself(Value* condition, Value*& value) {
  CmpInst::Predicate predicate;
  Value* other;
  if (!match(condition, m_FCmp(predicate, m_Value(value), m_Value(other))) || predicate != CmpInst::FCMP_UNO)
    return false;
  return value == other || match(other, m_AnyZeroFP());
}

}  // namespace

std::optional<MinMax> min_max_of(Value* value) {
  auto* select = dyn_cast<SelectInst>(value);
  if (!select) return std::nullopt;
  Value *one, *other, *tested;
  if (!match(select->getCondition(), m_c_Or(m_Value(one), m_Value(other))) &&
      !match(select->getCondition(), m_LogicalOr(m_Value(one), m_Value(other))))
    return std::nullopt;
  if (is_unordered_with_itself(one, tested)) std::swap(one, other);
  if (!is_unordered_with_itself(other, tested)) return std::nullopt;
  auto* comparison = dyn_cast<FCmpInst>(one);
  if (!comparison ||
      (comparison->getPredicate() != CmpInst::FCMP_OLT && comparison->getPredicate() != CmpInst::FCMP_OGT))
    return std::nullopt;
  MinMax min_max{comparison, has_equal_bits(tested, comparison->getOperand(0)) ? 0u : 1u};
  if (!has_equal_bits(tested, min_max.a()) || !has_equal_bits(select->getTrueValue(), min_max.b()) ||
      !has_equal_bits(select->getFalseValue(), min_max.a()) || as_floats(select->getType()) != min_max.a()->getType())
    return std::nullopt;
  return min_max;
}

bool is_number_constant(Constant& constant) {
  auto* vector = dyn_cast<FixedVectorType>(constant.getType());
  Type* type = as_floats(constant.getType());
  if (!type) return false;
  auto is_one = [&](Constant* element) {
    if (auto* number = dyn_cast_or_null<ConstantFP>(element)) return !number->isNaN();
    if (auto* bits = dyn_cast_or_null<ConstantInt>(element))
      return !APFloat(type->getScalarType()->getFltSemantics(), bits->getValue()).isNaN();
    return false;
  };
  if (!vector) return is_one(&constant);
  for (unsigned i = 0; i < vector->getNumElements(); ++i)
    if (!is_one(constant.getAggregateElement(i))) return false;
  return true;
}

namespace {

// Proves that values are never NaNs. A loop-carried value is assumed to be a number while its operands are examined: a
// NaN must originate somewhere.
class NumberAnalysis {
 public:
  bool is_number(Value* value) {
    assumed_.clear();
    return proves(value);
  }

 private:
  static constexpr size_t kMostAssumptions = 100;
  SetVector<Value*> assumed_;

  // Drops the assumptions of a failed proof.
  bool proves(Value* value) {
    if (assumed_.contains(value)) return true;
    if (assumed_.size() >= kMostAssumptions) return false;
    size_t before = assumed_.size();
    assumed_.insert(value);
    if (proves_by_operands(value)) return true;
    while (assumed_.size() > before) assumed_.pop_back();
    return false;
  }

  bool proves_by_operands(Value* value) {
    if (auto* constant = dyn_cast<Constant>(value)) return is_number_constant(*constant);
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction) return false;
    auto operand = [&](unsigned i) { return proves(instruction->getOperand(i)); };
    if (std::optional<MinMax> min_max = min_max_of(value)) return proves(min_max->a()) || proves(min_max->b());
    switch (instruction->getOpcode()) {
      case Instruction::PHI: return all_of(instruction->operands(), [&](Use& use) { return proves(use.get()); });
      case Instruction::Select: {
        // A value that is ordered with another is a number.
        auto* comparison = dyn_cast<FCmpInst>(instruction->getOperand(0));
        bool is_compared = comparison && CmpInst::isOrdered(comparison->getPredicate()) &&
                           (has_equal_bits(comparison->getOperand(0), instruction->getOperand(1)) ||
                            has_equal_bits(comparison->getOperand(1), instruction->getOperand(1)));
        return (is_compared || operand(1)) && operand(2);
      }
      case Instruction::BitCast:
        return as_floats(instruction->getType()) == as_floats(instruction->getOperand(0)->getType()) && operand(0);
      case Instruction::ShuffleVector: return operand(0) && (isa<UndefValue>(instruction->getOperand(1)) || operand(1));
      case Instruction::ExtractElement: return operand(0);
      case Instruction::InsertElement: return (isa<UndefValue>(instruction->getOperand(0)) || operand(0)) && operand(1);
      case Instruction::FNeg: return operand(0);
      case Instruction::SIToFP:
      case Instruction::UIToFP: return !instruction->getType()->getScalarType()->isHalfTy();
      default: return false;
    }
  }
};

}  // namespace

void match_min_max(Module& module) {
  struct Found {
    SelectInst* select;
    MinMax min_max;
    bool is_number;
  };
  SmallVector<Found> all;
  NumberAnalysis analysis;
  // All are analyzed before the first one is changed.
  for (Function& function : module)
    for (Instruction& instruction : instructions(function))
      if (std::optional<MinMax> min_max = min_max_of(&instruction))
        all.push_back({cast<SelectInst>(&instruction), *min_max, analysis.is_number(min_max->a())});
  for (auto& [select, min_max, is_number] : all) {
    IRBuilder<> builder(select);
    Value *a = min_max.a(), *b = min_max.b();
    Value* result = builder.CreateSelect(min_max.comparison, b, a);
    if (!is_number) result = builder.CreateSelect(builder.CreateFCmpUNO(a, a), b, result);
    result = builder.CreateBitCast(result, select->getType());
    select->replaceAllUsesWith(result);
    select->eraseFromParent();
  }
}

}  // namespace kiln
