#include "compiler/vectorize/narrow_integers.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/EquivalenceClasses.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/ConstantRange.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

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

class Narrower {
 public:
  Narrower(Function& function, const Divergence& divergence) : function_(function), divergence_(divergence) {}

  bool run() {
    for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function_))
      for (Instruction& instruction : *block) {
        if (!instruction.getType()->isIntegerTy() || instruction.getType()->isIntegerTy(1)) continue;
        ranges_.insert({&instruction, range_by_operands(instruction)});
        if (can_be_narrow(instruction, 16)) members_.push_back(&instruction), groups_.insert(&instruction);
      }
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
    // What a loop gives back has no range yet.
    if (const auto* phi = dyn_cast<PHINode>(&instruction)) return merged(phi->incoming_values());
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
      case Intrinsic::smax: return true;
      // The smallest number's is itself.
      case Intrinsic::abs: return cast<ConstantInt>(call.getArgOperand(1))->isZero();
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
      if (!is_extension_within(*operand, bits)) {
        gain -= kConversion;
        return;
      }
      has_extension = true;
      // Other users need it in 32 bits all the same.
      const bool is_only_here =
          all_of(operand->users(), [&](const User* user) { return inside.contains(user) || isa<ICmpInst>(user); });
      gain += is_only_here ? saved : -1;
    };
    for (const Instruction* member : group) {
      gain += member->getOpcode() == Instruction::Mul ? kWideProduct - 1 : isa<PHINode>(member) ? 0 : saved;
      for (const Value* operand : member->operands())
        if (operand->getType()->isIntegerTy(kWide)) take(operand);
      bool is_extended = false;
      for (const User* user : member->users()) {
        if (inside.contains(user)) continue;
        if (const auto* comparison = dyn_cast<ICmpInst>(user); comparison && can_compare(*comparison, bits)) {
          if (!compared.insert(comparison).second) continue;
          gain += saved;
          for (const Value* operand : comparison->operands()) take(operand);
        } else if (const auto* branch = dyn_cast<SwitchInst>(user); branch && can_switch(*branch, bits)) {
          gain += saved;
        } else if (is_truncation_within(*user, bits)) {
          gain += kConversion;
        } else {
          is_extended = true;
        }
      }
      if (is_extended) gain -= kConversion;
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
    Value *narrow = narrow_[&member], *wide = nullptr;
    SmallSetVector<Instruction*, 8> users;
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
        if (!wide) {
          builder.SetInsertPoint(*member.getInsertionPointAfterDef());
          wide = fits_unsigned(range_of(&member), bits) ? builder.CreateZExt(narrow, member.getType())
                                                        : builder.CreateSExt(narrow, member.getType());
          ranges_.insert({wide, range_of(&member)});
        }
        user->replaceUsesOfWith(&member, wide);
      }
    }
  }

  Function& function_;
  const Divergence& divergence_;
  DenseMap<const Value*, ConstantRange> ranges_;  // of integers that are computed
  SmallVector<Instruction*> members_;             // values of 32 bits that could have 16, in reverse postorder
  EquivalenceClasses<Instruction*> groups_;
  DenseMap<const Value*, Value*> narrow_;  // of the group that is being replaced
};

}  // namespace

bool narrow_integers(Function& function, const Divergence& divergence) { return Narrower(function, divergence).run(); }

}  // namespace kiln
