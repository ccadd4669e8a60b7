#include "compiler/passes/separate_lanes.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <bit>
#include <utility>

#include "compiler/passes/uniformity.h"
#include "compiler/passes/widen.h"

namespace kiln {

using namespace llvm;

void separate_lanes(Function& function) {
  const DataLayout& layout = function.getDataLayout();
  constexpr unsigned kBits = std::countr_zero(kLanes);
  auto is_multiple = [&](Value* value) { return computeKnownBits(value, layout).countMinTrailingZeros() >= kBits; };
  // The multiple, where the value is one and the lane.
  auto multiple_of = [&](Value* value) -> Value* {
    auto* sum = dyn_cast<BinaryOperator>(value);
    if (!sum || (sum->getOpcode() != Instruction::Or && sum->getOpcode() != Instruction::Add)) return nullptr;
    for (unsigned i : {0u, 1u})
      if (is_lane(sum->getOperand(i)) && is_multiple(sum->getOperand(1 - i))) return sum->getOperand(1 - i);
    return nullptr;
  };
  auto lane_of = [](Value* value) {
    auto* sum = cast<BinaryOperator>(value);
    return sum->getOperand(is_lane(sum->getOperand(0)) ? 0 : 1);
  };
  // In the order of the code, so that one that is separated serves the next.
  for (Instruction& instruction : make_early_inc_range(instructions(function))) {
    auto* operation = dyn_cast<BinaryOperator>(&instruction);
    if (!operation || !operation->getType()->isIntegerTy()) continue;
    Value *first = operation->getOperand(0), *second = operation->getOperand(1);
    if (operation->isCommutative() && !multiple_of(first)) std::swap(first, second);
    Value* multiple = multiple_of(first);
    if (!multiple) continue;
    IRBuilder<> builder(operation);
    auto with_lane = [&](Value* rest) -> Value* {
      return builder.Insert(BinaryOperator::CreateDisjoint(Instruction::Or, rest, lane_of(first)));
    };
    auto* constant = dyn_cast<ConstantInt>(second);
    Value* result = nullptr;
    switch (operation->getOpcode()) {
      case Instruction::Add:
        if (is_multiple(second)) result = with_lane(builder.CreateAdd(multiple, second));
        break;
      case Instruction::UDiv:
        if (is_multiple(second)) result = builder.CreateUDiv(multiple, second);
        break;
      case Instruction::LShr:
        if (constant && constant->getValue().uge(kBits)) result = builder.CreateLShr(multiple, second);
        break;
      case Instruction::URem:
        if (is_multiple(second)) result = with_lane(builder.CreateURem(multiple, second));
        break;
      case Instruction::And:
        if (constant && constant->getValue().countTrailingOnes() >= kBits)
          result = with_lane(builder.CreateAnd(multiple, second));
        break;
      default: break;
    }
    if (!result) continue;
    operation->replaceAllUsesWith(result);
    operation->eraseFromParent();
  }
}

}  // namespace kiln
