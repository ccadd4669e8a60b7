#include "compiler/lowering/affine_lanes.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/KnownBits.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "compiler/ir/simdgroup.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr unsigned kBits = std::countr_zero(kLanes);

// The operations of a sum in which the lane is looked for.
constexpr unsigned kMostTerms = 4;

class AffineLanes {
 public:
  explicit AffineLanes(Function& function) : function_(function), layout_(function.getDataLayout()) {}

  void run_lowest_bits() {
    for (Instruction& instruction : make_early_inc_range(instructions(function_)))
      if (auto* operation = dyn_cast<BinaryOperator>(&instruction); operation && operation->getType()->isIntegerTy())
        split_lowest_bits(*operation);
  }

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

  // A sum in which the lane is a term: the operations down to the lane, and which operand leads there.
  struct LaneSum {
    SmallVector<std::pair<BinaryOperator*, unsigned>, kMostTerms> steps;
    Value* lane = nullptr;
    // How many of the lowest bits are the lane's alone: those in which all that is added to it is 0.
    unsigned bits = 0;
  };

  // `may_wrap`: whether the sum may.
  std::optional<LaneSum> lane_sum(Value* value, bool may_wrap, unsigned depth = 0) const {
    if (is_lane(value)) return LaneSum{{}, value, value->getType()->getIntegerBitWidth()};
    auto* sum = dyn_cast<BinaryOperator>(value);
    if (!sum || depth == kMostTerms) return std::nullopt;
    const bool is_disjoint = sum->getOpcode() == Instruction::Or && cast<PossiblyDisjointInst>(sum)->isDisjoint();
    if (!is_disjoint && (sum->getOpcode() != Instruction::Add || !(may_wrap || sum->hasNoUnsignedWrap())))
      return std::nullopt;
    for (unsigned i : {0u, 1u}) {
      std::optional<LaneSum> found = lane_sum(sum->getOperand(i), may_wrap, depth + 1);
      if (!found) continue;
      const unsigned zeros = computeKnownBits(sum->getOperand(1 - i), layout_).countMinTrailingZeros();
      found->bits = std::min(found->bits, zeros);
      found->steps.emplace_back(sum, i);
      return found;
    }
    return std::nullopt;
  }

  // The same sum with another number below 32 in place of the lane. `keeps_parts`: nothing that is added to the lane is
  // changed by it, so that parts which are disjoint stay so.
  Value* with_lane(const LaneSum& sum, Value* changed, bool keeps_parts, IRBuilder<>& builder) const {
    for (auto [operation, i] : sum.steps) {
      Value* other = operation->getOperand(1 - i);
      const bool is_disjoint = keeps_parts || operation == sum.steps.front().first;
      changed = is_disjoint && operation->getOpcode() == Instruction::Or && is_multiple(other)
                    ? builder.Insert(BinaryOperator::CreateDisjoint(Instruction::Or, other, changed))
                    : builder.CreateAdd(changed, other);
    }
    return changed;
  }

  // Changes of lowest bits, as in `i ^ 1`, `i | 1` and `i & ~1`, are changes of the lane's: what is added to it is a
  // multiple of a power of two, and keeps lanes in their order.
  Value* with_lowest_bits_changed(BinaryOperator& operation) const {
    const auto opcode = operation.getOpcode();
    const auto* constant = dyn_cast<ConstantInt>(operation.getOperand(1));
    if (!constant || (opcode != Instruction::Xor && opcode != Instruction::Or && opcode != Instruction::And))
      return nullptr;
    const std::optional<LaneSum> sum = lane_sum(operation.getOperand(0), /*may_wrap=*/true);
    if (!sum) return nullptr;
    const unsigned known = std::min(kBits, sum->bits);
    const APInt bits = opcode == Instruction::And ? ~constant->getValue() : constant->getValue();
    IRBuilder<> builder(&operation);
    // Few of the lowest bits are left, and nothing else.
    if (opcode == Instruction::And && constant->getValue().getActiveBits() <= known)
      return builder.CreateAnd(sum->lane, operation.getOperand(1));
    if (bits.getActiveBits() > known) return nullptr;
    return with_lane(*sum, builder.CreateBinOp(opcode, sum->lane, operation.getOperand(1)), /*keeps_parts=*/true,
                     builder);
  }

  // `i >> 1` of a sum that does not wrap is what is added to the lane, shifted, and the lane, shifted.
  Value* shifted(BinaryOperator& operation) const {
    const auto* by = dyn_cast<ConstantInt>(operation.getOperand(1));
    if (operation.getOpcode() != Instruction::LShr || !by || by->getValue().uge(kBits)) return nullptr;
    const std::optional<LaneSum> sum = lane_sum(operation.getOperand(0), /*may_wrap=*/false);
    if (!sum || sum->steps.empty() || sum->bits < by->getZExtValue()) return nullptr;
    IRBuilder<> builder(&operation);
    Value* rest = with_lane(*sum, ConstantInt::get(sum->lane->getType(), 0), /*keeps_parts=*/true, builder);
    return builder.CreateAdd(builder.CreateLShr(rest, operation.getOperand(1)),
                             builder.CreateLShr(sum->lane, operation.getOperand(1)));
  }

  // `i - (i & 3)` is `i & ~3`, and its second operand may be the lane's bits already.
  Value* without_lowest_bits(BinaryOperator& operation) const {
    auto* bits = dyn_cast<BinaryOperator>(operation.getOperand(1));
    if (operation.getOpcode() != Instruction::Sub || !bits || bits->getOpcode() != Instruction::And ||
        !is_lane(bits->getOperand(0)) || !isa<ConstantInt>(bits->getOperand(1)))
      return nullptr;
    const std::optional<LaneSum> sum = lane_sum(operation.getOperand(0), /*may_wrap=*/true);
    if (!sum) return nullptr;
    IRBuilder<> builder(&operation);
    return with_lane(*sum, builder.CreateAnd(sum->lane, builder.CreateNot(bits->getOperand(1))), /*keeps_parts=*/false,
                     builder);
  }

  bool split_lowest_bits(BinaryOperator& operation) const {
    Value* result = with_lowest_bits_changed(operation);
    if (!result) result = without_lowest_bits(operation);
    if (!result && !multiple_of(operation.getOperand(0))) result = shifted(operation);
    if (!result) return false;
    operation.replaceAllUsesWith(result);
    operation.eraseFromParent();
    return true;
  }

  void split(BinaryOperator& operation) const {
    if (split_lowest_bits(operation)) return;
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

void split_lowest_bits(Function& function) { AffineLanes(function).run_lowest_bits(); }

}  // namespace kiln
