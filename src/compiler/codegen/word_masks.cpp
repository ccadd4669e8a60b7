#include "compiler/codegen/word_masks.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/EquivalenceClasses.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

constexpr unsigned kWordBits = 32;

bool are_booleans(const Type* type) {
  const auto* vector = dyn_cast<FixedVectorType>(type);
  return vector && vector->getElementType()->isIntegerTy(1) && vector->getNumElements() >= 8;
}

bool are_words(const Type* type) { return type->isVectorTy() && type->getScalarSizeInBits() == kWordBits; }

// What is computed of booleans.
bool is_operation(const Value* value) {
  if (!are_booleans(value->getType())) return false;
  const auto* operation = dyn_cast<BinaryOperator>(value);
  return (operation && operation->isBitwiseLogicOp()) || isa<PHINode, FreezeInst, SelectInst>(value);
}

// The operands that are booleans of as many lanes.
SmallVector<Value*> booleans_of(const Instruction& operation) {
  SmallVector<Value*> operands;
  for (Value* operand : operation.operands())
    if (operand->getType() == operation.getType()) operands.push_back(operand);
  return operands;
}

bool is_masked_access(const IntrinsicInst& call) {
  return call.getIntrinsicID() == Intrinsic::masked_load || call.getIntrinsicID() == Intrinsic::masked_store;
}

class WordMasks {
 public:
  explicit WordMasks(Function& function) : function_(function) {}

  bool run() {
    EquivalenceClasses<Instruction*> groups;
    SmallVector<Instruction*> order;
    for (Instruction& instruction : instructions(function_)) {
      if (!is_operation(&instruction)) continue;
      order.push_back(&instruction);
      groups.insert(&instruction);
      for (Value* operand : booleans_of(instruction))
        if (is_operation(operand)) groups.unionSets(&instruction, cast<Instruction>(operand));
    }
    // Of each group, what is gained where words are compared, selected and masked, less what others cost.
    DenseMap<Instruction*, int> gains;
    for (Instruction* one : order) gains[groups.getLeaderValue(one)] += gain_of(*one);
    for (Instruction* one : order)
      if (gains[groups.getLeaderValue(one)] > 0) chosen_.insert(one);
    for (Instruction* one : chosen_) convert(*one);
    for (auto [of, words] : phis_) {
      DenseMap<BasicBlock*, Value*> incoming;  // one value for all edges from a block
      for (unsigned i = 0; i < of->getNumIncomingValues(); ++i) {
        BasicBlock* from = of->getIncomingBlock(i);
        Value*& value = incoming[from];
        if (!value) {
          IRBuilder<> builder(from->getTerminator());
          value = words_of(of->getIncomingValue(i), builder);
        }
        words->addIncoming(value, from);
      }
    }
    for (Instruction* one : chosen_) replace_uses(*one);
    for (Instruction* one : chosen_) one->replaceAllUsesWith(PoisonValue::get(one->getType()));
    for (Instruction* one : chosen_) one->eraseFromParent();
    return !chosen_.empty();
  }

 private:
  static int gain_of(const Instruction& one) {
    int gain = 0;
    for (const Value* operand : booleans_of(one)) {
      if (is_operation(operand) || isa<Constant>(operand)) continue;
      const auto* comparison = dyn_cast<CmpInst>(operand);
      gain += comparison && are_words(comparison->getOperand(0)->getType()) ? 1 : -1;
    }
    for (const User* user : one.users()) {
      if (is_operation(user)) continue;
      if (const auto* select = dyn_cast<SelectInst>(user))
        gain += are_words(select->getType()) ? 1 : -1;
      else if (const auto* call = dyn_cast<IntrinsicInst>(user); call && is_masked_access(*call))
        gain += are_words(call->getType()->isVoidTy() ? call->getArgOperand(0)->getType() : call->getType()) ? 2 : -1;
      else if (isa<SExtInst>(user) && are_words(user->getType()))
        gain += 1;
    }
    return gain;
  }

  Type* words_type(const Value* booleans) const {
    return FixedVectorType::get(Type::getInt32Ty(function_.getContext()),
                                cast<FixedVectorType>(booleans->getType())->getNumElements());
  }

  // All bits of a word are its lane's boolean.
  Value* words_of(Value* booleans, IRBuilder<>& builder) {
    if (Value* made = words_.lookup(booleans)) return made;
    return builder.CreateSExt(booleans, words_type(booleans));
  }

  static Value* booleans_of_words(Value* words, IRBuilder<>& builder) {
    return builder.CreateICmpSLT(words, Constant::getNullValue(words->getType()));
  }

  void convert(Instruction& one) {
    IRBuilder<> builder(&one);
    if (auto* phi = dyn_cast<PHINode>(&one)) {
      PHINode* words = builder.CreatePHI(words_type(phi), phi->getNumIncomingValues());
      phis_.emplace_back(phi, words);
      words_[phi] = words;
      return;
    }
    if (auto* select = dyn_cast<SelectInst>(&one)) {
      words_[&one] = selected(*select, builder);
      return;
    }
    Value* first = words_of(one.getOperand(0), builder);
    if (isa<FreezeInst>(one)) {
      // What is frozen may be any word.
      words_[&one] = builder.CreateAShr(builder.CreateFreeze(first), kWordBits - 1);
      return;
    }
    Value* second = words_of(one.getOperand(1), builder);
    words_[&one] = builder.CreateBinOp(cast<BinaryOperator>(one).getOpcode(), first, second);
  }

  // A conjunction that keeps poison of its second operand from where the first is false, its counterpart, or a choice.
  Value* selected(SelectInst& select, IRBuilder<>& builder) {
    Value *one, *other;
    if (select.getCondition()->getType() == select.getType()) {
      const bool is_and = match(&select, m_LogicalAnd(m_Value(one), m_Value(other)));
      if (is_and || match(&select, m_LogicalOr(m_Value(one), m_Value(other)))) {
        Value* first = words_of(one, builder);
        Value* second = builder.CreateFreeze(words_of(other, builder));
        return is_and ? builder.CreateAnd(first, second) : builder.CreateOr(first, second);
      }
    }
    Value* condition = select.getCondition();
    if (Value* made = words_.lookup(condition)) condition = booleans_of_words(made, builder);
    Value* if_true = words_of(select.getTrueValue(), builder);
    Value* if_false = words_of(select.getFalseValue(), builder);
    return builder.CreateSelect(condition, if_true, if_false);
  }

  // Where a lane's sign is asked for, in the block of the use: the code generator sees a block at a time.
  void replace_uses(Instruction& one) {
    Value* words = words_.lookup(&one);
    for (Use& use : make_early_inc_range(one.uses())) {
      auto* user = cast<Instruction>(use.getUser());
      if (chosen_.contains(user)) continue;
      IRBuilder<> builder(user);
      auto* part = dyn_cast<ShuffleVectorInst>(user);
      if (isa<SExtInst>(user) && user->getType() == words->getType()) {
        user->replaceAllUsesWith(words);
        user->eraseFromParent();
      } else if (part && isa<PoisonValue>(part->getOperand(1))) {
        replace_part(*part, builder.CreateShuffleVector(words, part->getShuffleMask()));
        part->eraseFromParent();
      } else if (auto* bits = dyn_cast<BitCastInst>(user); bits && is_compared_with_zero(*bits))
        replace_test(*bits, builder.CreateOrReduce(words));
      else
        use.set(booleans_of_words(words, builder));
    }
  }

  static void replace_part(ShuffleVectorInst& part, Value* words) {
    // One value for all edges to a phi.
    IRBuilder<> at_part(&part);
    Value* for_phis = any_of(part.users(), [](User* user) { return isa<PHINode>(user); })
                          ? booleans_of_words(words, at_part)
                          : nullptr;
    for (Use& use : make_early_inc_range(part.uses())) {
      auto* user = cast<Instruction>(use.getUser());
      IRBuilder<> builder(user);
      use.set(isa<PHINode>(user) ? for_phis : booleans_of_words(words, builder));
    }
  }

  static bool is_compared_with_zero(const BitCastInst& bits) {
    return bits.getType()->isIntegerTy() && all_of(bits.users(), [](const User* user) {
             const auto* test = dyn_cast<ICmpInst>(user);
             return test && test->isEquality() && match(test->getOperand(1), m_Zero());
           });
  }

  // Whether any lane is active.
  static void replace_test(BitCastInst& bits, Value* any) {
    for (Use& use : make_early_inc_range(bits.uses())) {
      auto* test = cast<ICmpInst>(use.getUser());
      test->setOperand(0, any);
      test->setOperand(1, Constant::getNullValue(any->getType()));
    }
    bits.eraseFromParent();
  }

  Function& function_;
  SetVector<Instruction*> chosen_;
  DenseMap<Value*, Value*> words_;
  SmallVector<std::pair<PHINode*, PHINode*>> phis_;
};

}  // namespace

bool widen_masks_to_words(Function& function) { return WordMasks(function).run(); }

}  // namespace kiln
