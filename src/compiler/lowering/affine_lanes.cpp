#include "compiler/lowering/affine_lanes.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/KnownBits.h>

#include <bit>
#include <utility>

#include "compiler/ir/simdgroup.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr unsigned kBits = std::countr_zero(kLanes);

class AffineLanes {
 public:
  explicit AffineLanes(Function& function) : function_(function), layout_(function.getDataLayout()) {}

  void run() {
    for (BasicBlock& block : function_)
      for (PHINode& phi : make_early_inc_range(block.phis())) split(phi);
    // In program order, so that a split value is an operand of the next.
    for (Instruction& instruction : make_early_inc_range(instructions(function_))) {
      if (auto* comparison = dyn_cast<ICmpInst>(&instruction);
          comparison && comparison->getOperand(0)->getType()->isIntegerTy())
        split(*comparison);
      else if (auto* operation = dyn_cast<BinaryOperator>(&instruction);
               operation && operation->getType()->isIntegerTy())
        split(*operation);
    }
  }

 private:
  bool is_multiple(Value* value) const { return computeKnownBits(value, layout_).countMinTrailingZeros() >= kBits; }

  // The multiple, if the value is a multiple plus the lane.
  Value* multiple_of(Value* value) const {
    auto* sum = dyn_cast<BinaryOperator>(value);
    if (!sum || (sum->getOpcode() != Instruction::Or && sum->getOpcode() != Instruction::Add)) return nullptr;
    for (unsigned i : {0u, 1u})
      if (is_lane(sum->getOperand(i)) && is_multiple(sum->getOperand(1 - i))) return sum->getOperand(1 - i);
    return nullptr;
  }

  static Value* lane_of(Value* value) {
    auto* sum = cast<BinaryOperator>(value);
    return sum->getOperand(is_lane(sum->getOperand(0)) ? 0 : 1);
  }

  // A phi that starts with a lane and grows by a multiple of 32 is a multiple that grows, plus the lane.
  void split(PHINode& phi) const {
    if (!phi.getType()->isIntegerTy(32) || phi.getNumIncomingValues() != 2) return;
    for (unsigned i : {0u, 1u}) {
      Value* start = phi.getIncomingValue(i);
      auto* next = dyn_cast<BinaryOperator>(phi.getIncomingValue(1 - i));
      Value* multiple = is_lane(start) ? ConstantInt::get(phi.getType(), 0) : multiple_of(start);
      if (!multiple || !next || next->getOpcode() != Instruction::Add) continue;
      Value* step = next->getOperand(next->getOperand(0) == &phi ? 1 : 0);
      if ((next->getOperand(0) != &phi && next->getOperand(1) != &phi) || step == &phi || !is_multiple(step)) continue;
      Value* lane = is_lane(start) ? start : lane_of(start);
      PHINode* rest = PHINode::Create(phi.getType(), 2, phi.getName(), phi.getIterator());
      IRBuilder<> builder(&*phi.getParent()->getFirstInsertionPt());
      Value* whole = builder.Insert(BinaryOperator::CreateDisjoint(Instruction::Or, rest, lane));
      builder.SetInsertPoint(next);
      rest->addIncoming(multiple, phi.getIncomingBlock(i));
      rest->addIncoming(builder.CreateAdd(rest, step), phi.getIncomingBlock(1 - i));
      phi.replaceAllUsesWith(whole);
      phi.eraseFromParent();
      return;
    }
  }

  // The order of two multiples of 32 does not depend on a lane that is added to the first.
  void split(ICmpInst& comparison) const {
    Value *first = comparison.getOperand(0), *second = comparison.getOperand(1);
    ICmpInst::Predicate predicate = comparison.getPredicate();
    if (!multiple_of(first)) {
      std::swap(first, second);
      predicate = ICmpInst::getSwappedPredicate(predicate);
    }
    Value* multiple = multiple_of(first);
    if (!multiple) return;
    // Only a disjoint `or` cannot wrap, which a signed or unsigned order would see.
    if (cast<Instruction>(first)->getOpcode() != Instruction::Or) return;
    bool at_beginning = predicate == ICmpInst::ICMP_ULT || predicate == ICmpInst::ICMP_UGE ||
                        predicate == ICmpInst::ICMP_SLT || predicate == ICmpInst::ICMP_SGE;
    // `i > 32 n + 31`, as `i > 1023`, means that i is at least 32 (n + 1).
    bool at_end = predicate == ICmpInst::ICMP_UGT || predicate == ICmpInst::ICMP_ULE ||
                  predicate == ICmpInst::ICMP_SGT || predicate == ICmpInst::ICMP_SLE;
    KnownBits bits = computeKnownBits(second, layout_);
    if ((at_beginning && bits.countMinTrailingZeros() >= kBits) || (at_end && bits.countMinTrailingOnes() >= kBits)) {
      IRBuilder<> builder(&comparison);
      Value* result = builder.CreateICmp(predicate, multiple, second);
      comparison.replaceAllUsesWith(result);
      comparison.eraseFromParent();
    }
  }

  void split(BinaryOperator& operation) const {
    Value *first = operation.getOperand(0), *second = operation.getOperand(1);
    if (operation.isCommutative() && !multiple_of(first)) std::swap(first, second);
    Value* multiple = multiple_of(first);
    if (!multiple) return;
    IRBuilder<> builder(&operation);
    auto with_lane = [&](Value* rest) -> Value* {
      return builder.Insert(BinaryOperator::CreateDisjoint(Instruction::Or, rest, lane_of(first)));
    };
    auto* constant = dyn_cast<ConstantInt>(second);
    Value* result = nullptr;
    switch (operation.getOpcode()) {
      case Instruction::Add:
        if (is_multiple(second)) result = with_lane(builder.CreateAdd(multiple, second));
        break;
      case Instruction::UDiv:
        if (is_multiple(second)) result = builder.CreateUDiv(multiple, second);
        break;
      case Instruction::LShr:
      case Instruction::AShr: {
        if (!constant || constant->getValue().uge(operation.getType()->getIntegerBitWidth())) break;
        result = builder.CreateBinOp(operation.getOpcode(), multiple, second);
        // Several lanes then have the same value, as threads that share a word do.
        if (constant->getValue().ult(kBits))
          result = builder.Insert(
              BinaryOperator::CreateDisjoint(Instruction::Or, result, builder.CreateLShr(lane_of(first), second)));
        break;
      }
      case Instruction::URem:
        if (is_multiple(second)) result = with_lane(builder.CreateURem(multiple, second));
        break;
      case Instruction::And:
        if (constant && constant->getValue().countTrailingOnes() >= kBits)
          result = with_lane(builder.CreateAnd(multiple, second));
        else if (constant && constant->getValue().ult(kLanes))
          result = builder.CreateAnd(lane_of(first), second);
        break;
      default: break;
    }
    if (!result) return;
    operation.replaceAllUsesWith(result);
    operation.eraseFromParent();
  }

  Function& function_;
  const DataLayout& layout_;
};

}  // namespace

void split_affine_lanes(Function& function) { AffineLanes(function).run(); }

}  // namespace kiln
