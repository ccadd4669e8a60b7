#include "compiler/vectorize/narrow_integers.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/EquivalenceClasses.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/ConstantRange.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace kiln {
namespace {

using namespace llvm;

constexpr unsigned kWide = 32;

// Vector instructions, as a multiple of those for an operation on 16 bits: an extension or truncation between 16 and 32
// bits, and a product of 32 bits.
constexpr int kConversion = 3, kWideProduct = 4;

// How the lower bits of a value give it back.
bool fits_unsigned(const ConstantRange& range, unsigned bits) { return range.getActiveBits() <= bits; }
bool fits_signed(const ConstantRange& range, unsigned bits) { return range.getMinSignedBits() <= bits; }
bool fits(const ConstantRange& range, unsigned bits) { return fits_unsigned(range, bits) || fits_signed(range, bits); }

// Whether both can be given back in the same manner, so that equal and ordered numbers stay so.
bool fit_in_one_manner(const ConstantRange& one, const ConstantRange& other, unsigned bits) {
  return (fits_unsigned(one, bits) && fits_unsigned(other, bits)) ||
         (fits_signed(one, bits) && fits_signed(other, bits));
}

// Values from `low` to `high`.
struct Interval {
  int64_t low, high;
};

// What exceeds this is of no use.
constexpr int64_t kMostOfASum = int64_t{1} << 20;

// Sums of loops are followed over so many values.
constexpr unsigned kLongestSum = 500;

class Narrower {
 public:
  Narrower(Function& function, const Divergence& divergence, FunctionAnalysisManager& analyses)
      : function_(function),
        divergence_(divergence),
        analyses_(analyses),
        loops_(analyses.getResult<LoopAnalysis>(function)) {}

  bool run() {
    const ReversePostOrderTraversal<Function*> order(&function_);
    find_ranges(order);
    // Once more, where what a loop adds to a sum has a range now.
    if (find_sums()) find_ranges(order);
    for (BasicBlock* block : order)
      for (Instruction& instruction : *block)
        if (can_be_narrow(instruction, 16)) members_.push_back(&instruction), groups_.insert(&instruction);
    for (Instruction* member : members_)
      for (Value* operand : member->operands())
        if (auto* other = dyn_cast<Instruction>(operand); other && is_member(*other)) groups_.unionSets(member, other);
    // Numbers that are compared are narrowed together or not.
    for (Instruction* member : members_)
      for (User* user : member->users())
        if (auto* comparison = dyn_cast<ICmpInst>(user); comparison && can_compare(*comparison, 16))
          for (Value* operand : comparison->operands())
            if (auto* other = dyn_cast<Instruction>(operand); other && is_member(*other))
              groups_.unionSets(member, other);
    MapVector<Instruction*, SmallVector<Instruction*>> by_leader;
    for (Instruction* member : members_) by_leader[groups_.getLeaderValue(member)].push_back(member);
    bool has_changed = false;
    for (auto& [leader, group] : by_leader) {
      const unsigned bits = all_of(group, [&](Instruction* member) { return can_be_narrow(*member, 8); }) ? 8 : 16;
      if (gain_of(group, bits) <= 0) continue;
      replace(group, bits);
      has_changed = true;
    }
    return has_changed;
  }

 private:
  void find_ranges(const ReversePostOrderTraversal<Function*>& order) {
    for (BasicBlock* block : order)
      for (Instruction& instruction : *block)
        if (instruction.getType()->isIntegerTy() && !instruction.getType()->isIntegerTy(1))
          ranges_.insert_or_assign(&instruction, range_by_operands(instruction));
  }

  // Finds the sums of loops that run a known number of times at most, and what all iterations add. Returns whether
  // there are some.
  bool find_sums() {
    // Inner loops first: sums of outer ones go through them.
    const SmallVector<Loop*, 4> preorder = loops_.getLoopsInPreorder();
    for (Loop* loop : reverse(preorder)) {
      BasicBlock *before = loop->getLoopPredecessor(), *latch = loop->getLoopLatch();
      if (!before || !latch) continue;
      for (PHINode& phi : loop->getHeader()->phis()) {
        if (!phi.getType()->isIntegerTy(kWide) || !divergence_.is_divergent(&phi)) continue;
        Known known;
        std::optional<Interval> once = growth_of(phi.getIncomingValueForBlock(latch), phi, known);
        if (!once) continue;
        auto& evolution = analyses_.getResult<ScalarEvolutionAnalysis>(function_);
        const auto* most = dyn_cast<SCEVConstant>(evolution.getConstantMaxBackedgeTakenCount(loop));
        if (!most || most->getAPInt().ugt(kMostOfASum)) continue;
        const auto times = static_cast<int64_t>(most->getAPInt().getZExtValue());
        const Interval all{std::min<int64_t>(0, once->low * times), std::max<int64_t>(0, once->high * times)};
        if (all.low >= -kMostOfASum && all.high <= kMostOfASum)
          sums_.insert({&phi, {phi.getIncomingValueForBlock(before), all}});
      }
    }
    return !sums_.empty();
  }

  // What the value is more than the phi of a loop, if it is a sum of that and of others. `known` has what was asked
  // before.
  using Known = SmallDenseMap<Value*, std::optional<Interval>, 16>;
  std::optional<Interval> growth_of(Value* value, const PHINode& phi, Known& known) const {
    if (value == &phi) return Interval{0, 0};
    if (!isa<Instruction>(value)) return std::nullopt;
    if (auto found = known.find(value); found != known.end()) return found->second;
    if (known.size() >= kLongestSum) return std::nullopt;
    known[value] = std::nullopt;  // for values that lead to themselves
    auto growth = [&](Value* one) { return growth_of(one, phi, known); };
    auto joined = [&](auto&& values) {
      std::optional<Interval> all;
      for (Value* one : values) {
        std::optional<Interval> grown = growth(one);
        if (!grown) return grown;
        all = all ? Interval{std::min(all->low, grown->low), std::max(all->high, grown->high)} : *grown;
      }
      return all;
    };
    std::optional<Interval> result;
    if (auto* binary = dyn_cast<BinaryOperator>(value)) {
      Value *first = binary->getOperand(0), *second = binary->getOperand(1);
      if (binary->getOpcode() == Instruction::Sub) {
        const Interval taken = interval_of(second);
        result = sum_of(growth(first), {-taken.high, -taken.low});
      } else if (binary->getOpcode() == Instruction::Add) {
        result = sum_of(growth(first), interval_of(second));
        if (!result) result = sum_of(growth(second), interval_of(first));
      }
    } else if (auto* select = dyn_cast<SelectInst>(value)) {
      result = joined(ArrayRef<Value*>{select->getTrueValue(), select->getFalseValue()});
    } else if (auto* other = dyn_cast<PHINode>(value)) {
      if (auto found = sums_.find(other); found != sums_.end())
        result = sum_of(growth(found->second.first), found->second.second);
      else if (!loops_.isLoopHeader(other->getParent()))
        result = joined(other->incoming_values());
    }
    return known[value] = result;
  }

  static std::optional<Interval> sum_of(std::optional<Interval> sum, const Interval& addend) {
    if (!sum) return sum;
    const Interval result{sum->low + addend.low, sum->high + addend.high};
    if (result.low < -kMostOfASum || result.high > kMostOfASum) return std::nullopt;
    return result;
  }

  Interval interval_of(const Value* value) const {
    const ConstantRange range = range_of(value);
    if (range.isEmptySet()) return {0, 0};
    return {range.getSignedMin().getSExtValue(), range.getSignedMax().getSExtValue()};
  }

  ConstantRange range_of(const Value* value) const {
    if (const auto* constant = dyn_cast<ConstantInt>(value)) return ConstantRange(constant->getValue());
    auto found = ranges_.find(value);
    return found != ranges_.end() ? found->second : ConstantRange::getFull(value->getType()->getIntegerBitWidth());
  }

  ConstantRange range_by_operands(const Instruction& instruction) const {
    const unsigned bits = instruction.getType()->getIntegerBitWidth();
    auto of = [&](unsigned i) { return range_of(instruction.getOperand(i)); };
    auto merged = [&](auto&& values) {
      ConstantRange range = ConstantRange::getEmpty(bits);
      for (const Value* value : values) range = range.unionWith(range_of(value));
      return range;
    };
    if (const auto* binary = dyn_cast<BinaryOperator>(&instruction)) return of(0).binaryOp(binary->getOpcode(), of(1));
    if (isa<ZExtInst, SExtInst, TruncInst>(instruction)) {
      const auto opcode = cast<CastInst>(instruction).getOpcode();
      return of(0).castOp(opcode, bits);
    }
    if (isa<SelectInst>(instruction)) return of(1).unionWith(of(2));
    if (const auto* phi = dyn_cast<PHINode>(&instruction)) {
      if (auto found = sums_.find(phi); found != sums_.end()) {
        const Interval first = interval_of(found->second.first), more = found->second.second;
        const int64_t low = first.low + more.low, high = first.high + more.high;
        if (low >= std::numeric_limits<int32_t>::min() && high < std::numeric_limits<int32_t>::max())
          return {APInt(kWide, static_cast<uint64_t>(low), true), APInt(kWide, static_cast<uint64_t>(high + 1), true)};
      }
      // What a loop gives back has no range the first time.
      return merged(phi->incoming_values());
    }
    if (const auto* call = dyn_cast<IntrinsicInst>(&instruction); call && is_min_max_or_abs(*call)) {
      SmallVector<ConstantRange, 2> operands{of(0)};
      operands.push_back(call->getIntrinsicID() == Intrinsic::abs ? ConstantRange(APInt(1, 0)) : of(1));
      return ConstantRange::intrinsic(call->getIntrinsicID(), operands);
    }
    return ConstantRange::getFull(bits);
  }

  static bool is_min_max_or_abs(const IntrinsicInst& call) {
    switch (call.getIntrinsicID()) {
      case Intrinsic::umin:
      case Intrinsic::umax:
      case Intrinsic::smin:
      case Intrinsic::smax:
      // The smallest number's is itself, or nothing that matters.
      case Intrinsic::abs: return true;
      default: return false;
    }
  }

  static bool is_part_of_address(const Instruction& instruction) {
    return any_of(instruction.users(), [](const User* user) {
      return isa<GetElementPtrInst, IntToPtrInst>(user) ||
             (isa<ZExtInst, SExtInst>(user) && user->getType()->isIntegerTy(64));
    });
  }

  // Whether the lower bits of the result follow from the lower bits of the operands, and are enough.
  bool can_be_narrow(const Instruction& instruction, unsigned bits) const {
    if (!instruction.getType()->isIntegerTy(kWide) || !divergence_.is_divergent(&instruction)) return false;
    if (!fits(range_of(&instruction), bits) || is_part_of_address(instruction)) return false;
    auto of = [&](unsigned i) { return range_of(instruction.getOperand(i)); };
    const auto* constant =
        instruction.getNumOperands() > 1 ? dyn_cast<ConstantInt>(instruction.getOperand(1)) : nullptr;
    const bool has_bytes = bits == 8;
    const bool is_shift_inside = constant && constant->getValue().ult(bits) && !has_bytes;
    switch (instruction.getOpcode()) {
      case Instruction::Add:
      case Instruction::Sub:
      case Instruction::And:
      case Instruction::Or:
      case Instruction::Xor:
      case Instruction::Select:
      case Instruction::PHI: return true;
      case Instruction::Mul: return !has_bytes;
      case Instruction::Shl: return is_shift_inside;
      case Instruction::LShr: return is_shift_inside && fits_unsigned(of(0), bits);
      case Instruction::AShr: return is_shift_inside && fits(of(0), bits);
      case Instruction::UDiv:
      case Instruction::URem:
        return constant && !constant->isZero() && !has_bytes && fits_unsigned(of(0), bits) &&
               fits_unsigned(of(1), bits);
      case Instruction::SDiv:
      case Instruction::SRem:
        return constant && !constant->isZero() && !constant->isMinusOne() && !has_bytes && fits_signed(of(0), bits) &&
               fits_signed(of(1), bits);
      case Instruction::Call: {
        const auto* call = dyn_cast<IntrinsicInst>(&instruction);
        if (!call || !is_min_max_or_abs(*call)) return false;
        return call->getIntrinsicID() == Intrinsic::abs ? fits_signed(of(0), bits)
                                                        : fit_in_one_manner(of(0), of(1), bits);
      }
      default: return false;
    }
  }

  bool can_compare(const ICmpInst& comparison, unsigned bits) const {
    return comparison.getOperand(0)->getType()->isIntegerTy(kWide) &&
           fit_in_one_manner(range_of(comparison.getOperand(0)), range_of(comparison.getOperand(1)), bits);
  }

  bool can_switch(const SwitchInst& branch, unsigned bits) const {
    // All in one: a label of each manner may have the same lower bits.
    auto all_fit = [&](bool (*fits)(const ConstantRange&, unsigned)) {
      return fits(range_of(branch.getCondition()), bits) && all_of(branch.cases(), [&](const auto& label) {
               return fits(ConstantRange(label.getCaseValue()->getValue()), bits);
             });
    };
    return all_fit(fits_unsigned) || all_fit(fits_signed);
  }

  bool is_member(Instruction& instruction) const { return groups_.findValue(&instruction) != groups_.end(); }

  static bool is_extension_within(const Value& value, unsigned bits) {
    return isa<ZExtInst, SExtInst>(value) && cast<CastInst>(value).getSrcTy()->getIntegerBitWidth() <= bits;
  }

  static bool is_truncation_within(const Value& value, unsigned bits) {
    return isa<TruncInst>(value) && value.getType()->getIntegerBitWidth() <= bits;
  }

  // An iteration of a loop counts as four.
  int weight_of(const BasicBlock* block) const { return 1 << (2 * std::min(loops_.getLoopDepth(block), 4u)); }

  // Where a member is extended for users of 32 bits.
  struct Extension {
    bool is_at_users = false;  // at each of them, after the member's loop; otherwise once, where the member is
    int weight = 0;
  };

  Extension extension_of(const Instruction& member, ArrayRef<const Instruction*> users) const {
    const int once = weight_of(member.getParent());
    const Loop* loop = loops_.getLoopFor(member.getParent());
    int at_users = 0;
    for (const Instruction* user : users) {
      if (!loop || loop->contains(user->getParent()) || isa<PHINode>(user)) return {false, once};
      at_users += weight_of(user->getParent());
    }
    return at_users < once ? Extension{true, at_users} : Extension{false, once};
  }

  // Vector instructions that are saved.
  int gain_of(ArrayRef<Instruction*> group, unsigned bits) const {
    const SmallPtrSet<const Value*, 16> inside(group.begin(), group.end());
    // As many of 32 bits as there are of 16, times this, are needed for a simdgroup.
    const int saved = bits == 8 ? 3 : 1;
    SmallPtrSet<const Value*, 16> from, compared;
    int gain = 0;
    bool has_extension = false;
    auto take = [&](const Value* operand) {
      if (inside.contains(operand) || isa<Constant>(operand) || !from.insert(operand).second) return;
      if (!divergence_.is_divergent(operand)) return;
      const auto* computed = dyn_cast<Instruction>(operand);
      const int weight = computed ? weight_of(computed->getParent()) : 1;
      if (!is_extension_within(*operand, bits)) {
        gain -= kConversion * weight;
        return;
      }
      has_extension = true;
      // Other users need it in 32 bits all the same.
      const bool is_only_here =
          all_of(operand->users(), [&](const User* user) { return inside.contains(user) || isa<ICmpInst>(user); });
      gain += (is_only_here ? saved : -1) * weight;
    };
    for (const Instruction* member : group) {
      gain += (member->getOpcode() == Instruction::Mul ? kWideProduct - 1
               : isa<PHINode>(member)                  ? 0
                                                       : saved) *
              weight_of(member->getParent());
      for (const Value* operand : member->operands())
        if (operand->getType()->isIntegerTy(kWide)) take(operand);
      SmallSetVector<const Instruction*, 8> extended;
      for (const User* one : member->users()) {
        if (inside.contains(one)) continue;
        const auto* user = cast<Instruction>(one);
        const int weight = weight_of(user->getParent());
        if (const auto* comparison = dyn_cast<ICmpInst>(user); comparison && can_compare(*comparison, bits)) {
          if (!compared.insert(comparison).second) continue;
          gain += saved * weight;
          for (const Value* operand : comparison->operands()) take(operand);
        } else if (const auto* branch = dyn_cast<SwitchInst>(user); branch && can_switch(*branch, bits)) {
          gain += saved * weight;
        } else if (is_truncation_within(*user, bits)) {
          gain += kConversion * weight;
        } else {
          extended.insert(user);
        }
      }
      gain -= kConversion * extension_of(*member, extended.getArrayRef()).weight;
    }
    return has_extension ? gain : 0;
  }

  // The lower bits of a value that is not narrowed itself.
  Value* low_bits(Value* value, unsigned bits) {
    Type* type = IntegerType::get(value->getContext(), bits);
    if (auto* constant = dyn_cast<ConstantInt>(value)) return ConstantInt::get(type, constant->getValue().trunc(bits));
    auto found = narrow_.find(value);
    if (found != narrow_.end()) return found->second;
    if (isa<UndefValue>(value)) return UndefValue::get(type);
    auto* instruction = dyn_cast<Instruction>(value);
    IRBuilder<> builder(value->getContext());
    if (!instruction)
      builder.SetInsertPoint(function_.getEntryBlock().getFirstInsertionPt());
    else
      builder.SetInsertPoint(*instruction->getInsertionPointAfterDef());
    Value* result;
    if (is_extension_within(*value, bits)) {
      auto* extension = cast<CastInst>(value);
      result = extension->getSrcTy() == type
                   ? extension->getOperand(0)
                   : builder.CreateCast(extension->getOpcode(), extension->getOperand(0), type);
    } else {
      result = builder.CreateTrunc(value, type);
    }
    narrow_.insert({value, result});
    return result;
  }

  Value* made_narrow(Instruction& member, unsigned bits, IRBuilder<>& builder) {
    auto low = [&](unsigned i) { return low_bits(member.getOperand(i), bits); };
    auto of = [&](unsigned i) { return range_of(member.getOperand(i)); };
    if (isa<SelectInst>(member)) return builder.CreateSelect(member.getOperand(0), low(1), low(2));
    if (auto* call = dyn_cast<IntrinsicInst>(&member)) {
      if (call->getIntrinsicID() == Intrinsic::abs)
        return builder.CreateBinaryIntrinsic(Intrinsic::abs, low(0), builder.getFalse());
      // Numbers without a sign are ordered as such. Those with a sign are extended to larger ones without it.
      Intrinsic::ID id = call->getIntrinsicID();
      if (fits_unsigned(of(0), bits) && fits_unsigned(of(1), bits)) {
        if (id == Intrinsic::smin) id = Intrinsic::umin;
        if (id == Intrinsic::smax) id = Intrinsic::umax;
      }
      return builder.CreateBinaryIntrinsic(id, low(0), low(1));
    }
    auto opcode = static_cast<Instruction::BinaryOps>(member.getOpcode());
    if (opcode == Instruction::AShr && !fits_signed(of(0), bits)) opcode = Instruction::LShr;
    return builder.CreateBinOp(opcode, low(0), low(1));
  }

  void replace(ArrayRef<Instruction*> group, unsigned bits) {
    narrow_.clear();
    Type* type = IntegerType::get(function_.getContext(), bits);
    const SmallPtrSet<const Value*, 16> inside(group.begin(), group.end());
    // In reverse postorder: operands come first, but for those of phis.
    for (Instruction* member : group) {
      IRBuilder<> builder(member);
      narrow_[member] = isa<PHINode>(member) ? builder.CreatePHI(type, cast<PHINode>(member)->getNumIncomingValues())
                                             : made_narrow(*member, bits, builder);
    }
    for (Instruction* member : group)
      if (auto* phi = dyn_cast<PHINode>(member))
        for (auto [value, block] : zip(phi->incoming_values(), phi->blocks()))
          cast<PHINode>(narrow_[phi])->addIncoming(low_bits(value, bits), block);
    for (Instruction* member : group) replace_uses(*member, bits, inside);
    SmallVector<Instruction*> extensions;
    for (auto [value, narrow] : narrow_)
      if (isa<ZExtInst, SExtInst>(value)) extensions.push_back(cast<Instruction>(const_cast<Value*>(value)));
    for (Instruction* member : reverse(group)) {
      member->replaceAllUsesWith(PoisonValue::get(member->getType()));
      ranges_.erase(member);
      member->eraseFromParent();
    }
    for (Instruction* extension : extensions)
      if (extension->use_empty()) {
        ranges_.erase(extension);
        extension->eraseFromParent();
      }
  }

  void replace_uses(Instruction& member, unsigned bits, const SmallPtrSetImpl<const Value*>& inside) {
    Value* narrow = narrow_[&member];
    SmallSetVector<Instruction*, 8> users;
    SmallVector<Instruction*> extended;
    for (User* user : member.users())
      if (!inside.contains(user)) users.insert(cast<Instruction>(user));
    auto replace_user = [&](Instruction& user, Value* value) {
      user.replaceAllUsesWith(value);
      ranges_.erase(&user);
      user.eraseFromParent();
    };
    for (Instruction* user : users) {
      IRBuilder<> builder(user);
      if (is_truncation_within(*user, bits)) {
        replace_user(*user, builder.CreateTrunc(narrow, user->getType()));
      } else if (auto* comparison = dyn_cast<ICmpInst>(user); comparison && can_compare(*comparison, bits)) {
        const bool is_unsigned = fits_unsigned(range_of(comparison->getOperand(0)), bits) &&
                                 fits_unsigned(range_of(comparison->getOperand(1)), bits);
        const auto predicate = is_unsigned ? comparison->getUnsignedPredicate() : comparison->getPredicate();
        replace_user(*user, builder.CreateICmp(predicate, low_bits(comparison->getOperand(0), bits),
                                               low_bits(comparison->getOperand(1), bits)));
      } else if (auto* branch = dyn_cast<SwitchInst>(user); branch && can_switch(*branch, bits)) {
        branch->setCondition(narrow);
        for (auto& label : branch->cases())
          label.setValue(ConstantInt::get(branch->getContext(), label.getCaseValue()->getValue().trunc(bits)));
      } else {
        extended.push_back(user);
      }
    }
    if (extended.empty()) return;
    auto extend = [&](BasicBlock::iterator before) {
      IRBuilder<> builder(before->getParent(), before);
      Value* wide = fits_unsigned(range_of(&member), bits) ? builder.CreateZExt(narrow, member.getType())
                                                           : builder.CreateSExt(narrow, member.getType());
      ranges_.insert_or_assign(wide, range_of(&member));
      return wide;
    };
    const bool is_at_users = extension_of(member, ArrayRef<Instruction*>(extended)).is_at_users;
    Value* once = is_at_users ? nullptr : extend(*member.getInsertionPointAfterDef());
    for (Instruction* user : extended) user->replaceUsesOfWith(&member, once ? once : extend(user->getIterator()));
  }

  Function& function_;
  const Divergence& divergence_;
  FunctionAnalysisManager& analyses_;
  const LoopInfo& loops_;
  DenseMap<const Value*, ConstantRange> ranges_;  // of integers that are computed
  // Of a loop's phi that is a sum: what it begins with, and what all iterations before one may have added.
  DenseMap<const PHINode*, std::pair<Value*, Interval>> sums_;
  SmallVector<Instruction*> members_;  // values of 32 bits that could have 16, in reverse postorder
  EquivalenceClasses<Instruction*> groups_;
  DenseMap<const Value*, Value*> narrow_;  // of the group that is being replaced
};

}  // namespace

bool narrow_integers(Function& function, const Divergence& divergence, FunctionAnalysisManager& analyses) {
  return Narrower(function, divergence, analyses).run();
}

}  // namespace kiln
