#include "compiler/codegen/half_comparisons.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/Local.h>

#include <optional>

#include "compiler/codegen/min_max_idiom.h"

namespace kiln {
namespace {

using namespace llvm;

enum class Nans : bool { kLeast, kGreatest };

constexpr int kMagnitude = 0x7fff, kInfinity = 0x7c00, kAboveInfinity = kMagnitude - kInfinity;
constexpr unsigned kMostUses = 64;

bool are_halves(const Type* type) { return type->isVectorTy() && type->getScalarType()->isHalfTy(); }

bool is_number(Value* value) {
  auto* constant = dyn_cast<Constant>(value);
  return constant && is_number_constant(*constant);
}

// The code generator uses the same float again. (A value of very many uses is not asked, to stay linear.)
bool is_float_anyway(Value* value) {
  if (isa<Constant>(value)) return true;
  return !value->hasNUsesOrMore(kMostUses) &&
         any_of(value->users(), [](User* user) { return isa<FPExtInst>(user) || isa<BinaryOperator>(user); });
}

class HalfComparisons {
 public:
  HalfComparisons(Function& function, const VectorIsa& isa) : function_(function), isa_(isa) {}

  void run() {
    find_carried();
    // A comparison and a NaN test may be parts of a minimum or maximum.
    each<SelectInst>([&](SelectInst& select) { return min_or_max(select); });
    each<FCmpInst>([&](FCmpInst& comparison) { return compared(comparison); });
    fill_phis();
    RecursivelyDeleteTriviallyDeadInstructionsPermissive(unused_);
  }

 private:
  // Replaces the instructions for which `integers_for` has something, each after what it uses.
  template <typename T>
  void each(function_ref<Value*(T&)> integers_for) {
    for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function_)) {
      for (auto& keys : keys_in_block_) keys.clear();
      for (Instruction& instruction : make_early_inc_range(*block)) {
        auto* one = dyn_cast<T>(&instruction);
        Value* integers = one ? integers_for(*one) : nullptr;
        if (!integers) continue;
        for (Value* operand : instruction.operands()) unused_.emplace_back(operand);
        instruction.replaceAllUsesWith(integers);
        instruction.eraseFromParent();
      }
    }
  }

  // Phis that carry minima and maxima from block to block, and constants: their keys are carried with them, so that the
  // next one does not wait for a key of the last one's bits.
  void find_carried() {
    SmallVector<PHINode*> work;
    for (BasicBlock& block : function_)
      for (PHINode& phi : block.phis())
        if (are_halves(phi.getType())) work.push_back(&phi);
    auto is_carried = [&](Value* value) {
      if (auto* phi = dyn_cast<PHINode>(value)) return !others_.contains(phi);
      return isa<Constant>(value) || min_max_of(value);
    };
    while (!work.empty()) {
      PHINode* phi = work.pop_back_val();
      if (others_.contains(phi) || all_of(phi->incoming_values(), is_carried)) continue;
      others_.insert(phi);
      for (User* user : phi->users())
        if (auto* next = dyn_cast<PHINode>(user)) work.push_back(next);
    }
  }

  void fill_phis() {
    // Keys of incoming phis may make more of them.
    for (size_t i = 0; i < made_phis_.size(); ++i) {
      auto [of, keys, nans] = made_phis_[i];
      DenseMap<BasicBlock*, Value*> incoming;
      for (unsigned k = 0; k < of->getNumIncomingValues(); ++k) {
        Value*& made = incoming[of->getIncomingBlock(k)];
        if (!made) {
          for (auto& in_block : keys_in_block_) in_block.clear();
          IRBuilder<> builder(of->getIncomingBlock(k)->getTerminator());
          made = key(of->getIncomingValue(k), nans, builder);
        }
        keys->addIncoming(made, of->getIncomingBlock(k));
      }
    }
  }

  // The idiom's condition is `b` before `a` in an order in which NaNs are last of all.
  Value* min_or_max(SelectInst& select) {
    const std::optional<MinMax> found = are_halves(select.getType()) ? min_max_of(&select) : std::nullopt;
    if (!found || (is_float_anyway(found->a()) && is_float_anyway(found->b()))) return nullptr;
    Value *a = found->a(), *b = found->b();
    const bool is_max = (found->comparison->getPredicate() == CmpInst::FCMP_OLT) == (found->first == 0);
    const Nans nans = is_max ? Nans::kLeast : Nans::kGreatest;
    IRBuilder<> builder(&select);
    Value *key_a = key(a, nans, builder), *key_b = key(b, nans, builder);
    Value *bits_a = bits(a, builder), *bits_b = bits(b, builder);
    Value* takes_b = builder.CreateICmp(is_max ? CmpInst::ICMP_SGT : CmpInst::ICMP_SLT, key_b, key_a);
    Value* result = builder.CreateBitCast(builder.CreateSelect(takes_b, bits_b, bits_a), a->getType());
    // Of a chain of them.
    keys_[static_cast<bool>(nans)][result] =
        builder.CreateBinaryIntrinsic(is_max ? Intrinsic::smax : Intrinsic::smin, key_a, key_b);
    return result;
  }

  Value* compared(FCmpInst& comparison) {
    Value *a = comparison.getOperand(0), *b = comparison.getOperand(1);
    if (!are_halves(a->getType()) || (is_float_anyway(a) && is_float_anyway(b))) return nullptr;
    IRBuilder<> builder(&comparison);
    CmpInst::Predicate predicate = comparison.getPredicate();
    if (predicate == CmpInst::FCMP_UNO || predicate == CmpInst::FCMP_ORD) {
      if (a != b && !is_number(b)) return nullptr;
      Value* values = bits(a, builder);
      Value* magnitude = builder.CreateAnd(values, ConstantInt::get(values->getType(), kMagnitude));
      return builder.CreateICmp(predicate == CmpInst::FCMP_UNO ? CmpInst::ICMP_UGT : CmpInst::ICMP_ULE, magnitude,
                                ConstantInt::get(magnitude->getType(), kInfinity));
    }
    if (is_number(a)) std::swap(a, b), predicate = CmpInst::getSwappedPredicate(predicate);
    if (!is_number(b)) return nullptr;
    CmpInst::Predicate of_keys;
    bool is_less;
    switch (predicate) {
      case CmpInst::FCMP_OEQ: of_keys = CmpInst::ICMP_EQ, is_less = true; break;
      case CmpInst::FCMP_UNE: of_keys = CmpInst::ICMP_NE, is_less = true; break;
      case CmpInst::FCMP_OLT:
      case CmpInst::FCMP_ULT: of_keys = CmpInst::ICMP_SLT, is_less = true; break;
      case CmpInst::FCMP_OLE:
      case CmpInst::FCMP_ULE: of_keys = CmpInst::ICMP_SLE, is_less = true; break;
      case CmpInst::FCMP_OGT:
      case CmpInst::FCMP_UGT: of_keys = CmpInst::ICMP_SGT, is_less = false; break;
      case CmpInst::FCMP_OGE:
      case CmpInst::FCMP_UGE: of_keys = CmpInst::ICMP_SGE, is_less = false; break;
      default: return nullptr;
    }
    // A NaN is not less than a number, unless the predicate is true for NaNs.
    const Nans nans = is_less == CmpInst::isUnordered(predicate) ? Nans::kLeast : Nans::kGreatest;
    Value* first = key(a, nans, builder);
    Value* second = key(b, nans, builder);
    return builder.CreateICmp(of_keys, first, second);
  }

  // In the order of the numbers.
  Value* key(Value* halves, Nans nans, IRBuilder<>& builder) {
    if (Value* carried = keys_[static_cast<bool>(nans)].lookup(halves)) return carried;
    if (auto* phi = dyn_cast<PHINode>(halves); phi && !others_.contains(phi)) {
      IRBuilder<> at_phi(phi);
      PHINode* keys = at_phi.CreatePHI(bits_of(phi->getType()), phi->getNumIncomingValues());
      made_phis_.push_back({phi, keys, nans});
      return keys_[static_cast<bool>(nans)][phi] = keys;
    }
    Value*& made = keys_in_block_[static_cast<bool>(nans)][halves];
    if (made) return made;
    Value* values = bits(halves, builder);
    auto constant = [&](int number) { return ConstantInt::get(values->getType(), static_cast<uint16_t>(number)); };
    const int offset = nans == Nans::kLeast ? kAboveInfinity : -(kAboveInfinity + 1);
    const int from = 0x8000 + offset;  // what negative numbers' bits are subtracted from
    if (isa<Constant>(halves) || isa_.has_mask_registers) {
      Value* is_negative = builder.CreateICmpSLT(values, constant(0));
      Value* of_negative = builder.CreateSub(constant(from), values);
      return made = builder.CreateSelect(is_negative, of_negative, builder.CreateAdd(values, constant(offset)));
    }
    // Without a select, which takes a mask of its own: `from - x` is `~x + offset + 0x8001`.
    Value* sign = builder.CreateAShr(values, constant(15));
    Value* sum = builder.CreateAdd(builder.CreateXor(values, sign), constant(offset));
    return made = builder.CreateAdd(sum, builder.CreateAnd(sign, constant(0x8001)));
  }

  static Type* bits_of(Type* halves) {
    auto* type = cast<FixedVectorType>(halves);
    return FixedVectorType::get(Type::getInt16Ty(type->getContext()), type->getNumElements());
  }
  static Value* bits(Value* halves, IRBuilder<>& builder) {
    return builder.CreateBitCast(halves, bits_of(halves->getType()));
  }

  struct KeyPhi {
    PHINode *of, *keys;
    Nans nans;
  };

  Function& function_;
  const VectorIsa& isa_;
  SmallVector<WeakTrackingVH> unused_;
  SmallPtrSet<PHINode*, 8> others_;  // phis that do not carry minima and maxima
  SmallVector<KeyPhi> made_phis_;
  // By Nans. Keys that are there wherever their value is, and those of a block, from where they are first asked for.
  DenseMap<Value*, Value*> keys_[2], keys_in_block_[2];
};

}  // namespace

void compare_halves_as_integers(Module& module, const VectorIsa& vector_isa) {
  for (Function& function : module)
    if (!function.isDeclaration()) HalfComparisons(function, vector_isa).run();
}

}  // namespace kiln
