#include "compiler/workgroup/thread_coarsening.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/InstructionSimplify.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/KnownBits.h>
#include <llvm/Transforms/Utils/Local.h>

#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/ir/remarks.h"
#include "compiler/ir/simdgroup.h"

namespace kiln {

using namespace llvm;
using namespace llvm::PatternMatch;

namespace {

// Instructions. Fewer cost less than the loop.
constexpr unsigned kLeastShared = 16;

const CallInst* call_of_half(const Value* value) {
  const auto* call = dyn_cast<CallInst>(value);
  return call && calls(*call, kHalfOffsetFunction) ? call : nullptr;
}

// Values that depend on the half offset through integer arithmetic.
class HalfOffsetElimination {
 public:
  HalfOffsetElimination(Value* half_offset, const DataLayout& layout) : half_offset_(half_offset), layout_(layout) {}

  bool depends(Value* value) {
    if (value == half_offset_) return true;
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || isa<PHINode>(instruction) || !instruction->getType()->isIntegerTy()) return false;
    auto [found, is_new] = depends_.insert({value, false});
    if (!is_new) return found->second;
    bool depends = any_of(instruction->operands(), [&](Use& use) { return this->depends(use.get()); });
    return depends_[value] = depends;
  }

  /// Returns a value that agrees with `value` in the demanded bits and does not depend on the half offset, or null.
  Value* without_half(Value* value, const APInt& demanded, unsigned depth = 0) {
    if (value == half_offset_) return demanded[Log2_32(kLanes)] ? nullptr : ConstantInt::get(value->getType(), 0);
    if (!depends(value)) return value;
    if (depth > 8) return nullptr;
    auto* instruction = cast<Instruction>(value);
    IRBuilder<> builder(instruction);
    auto operand = [&](unsigned i, const APInt& bits) {
      return without_half(instruction->getOperand(i), bits, depth + 1);
    };
    auto* constant = instruction->getNumOperands() == 2 ? dyn_cast<ConstantInt>(instruction->getOperand(1)) : nullptr;
    unsigned width = instruction->getType()->getIntegerBitWidth();
    const unsigned low = Log2_32(kCoarsenedThreads);
    switch (instruction->getOpcode()) {
      case Instruction::And: {
        Value* first = operand(0, constant ? demanded & constant->getValue() : demanded);
        Value* second = first ? operand(1, demanded) : nullptr;
        return second ? builder.CreateAnd(first, second) : nullptr;
      }
      case Instruction::Or: {
        Value* first = operand(0, constant ? demanded & ~constant->getValue() : demanded);
        Value* second = first ? operand(1, demanded) : nullptr;
        return second ? builder.CreateOr(first, second) : nullptr;
      }
      case Instruction::Add: {
        // No carry leaves the low bits if they are zero in one operand.
        if (demanded.countr_zero() < low) return nullptr;
        for (unsigned i : {0u, 1u}) {
          Value* multiple = instruction->getOperand(i);
          if (depends(multiple) || computeKnownBits(multiple, layout_).countMinTrailingZeros() < low) continue;
          if (Value* other = operand(1 - i, APInt::getHighBitsSet(width, width - low)))
            return builder.CreateAdd(multiple, other);
        }
        return nullptr;
      }
      case Instruction::LShr:
        if (!constant || constant->getValue().uge(width)) return nullptr;
        if (Value* shifted = operand(0, demanded.shl(constant->getValue())))
          return builder.CreateLShr(shifted, constant);
        return nullptr;
      case Instruction::Shl:
        if (!constant || constant->getValue().uge(width)) return nullptr;
        if (Value* shifted = operand(0, demanded.lshr(constant->getValue())))
          return builder.CreateShl(shifted, constant);
        return nullptr;
      case Instruction::UDiv:
        if (!constant || constant->getValue().countr_zero() < low || constant->isZero()) return nullptr;
        if (Value* number = operand(0, APInt::getHighBitsSet(width, width - low)))
          return builder.CreateUDiv(number, constant);
        return nullptr;
      case Instruction::ZExt: {
        unsigned from = instruction->getOperand(0)->getType()->getIntegerBitWidth();
        if (Value* narrow = operand(0, demanded.trunc(from))) return builder.CreateZExt(narrow, instruction->getType());
        return nullptr;
      }
      default: return nullptr;
    }
  }

 private:
  Value* half_offset_;
  const DataLayout& layout_;
  DenseMap<Value*, bool> depends_;
};

}  // namespace

void split_coarsened_positions(Function& function, Argument& x) {
  IRBuilder<> builder(&*function.getEntryBlock().getFirstInsertionPt());
  Type* type = x.getType();
  Function* callee =
      &pseudo_intrinsic(*function.getParent(), kHalfOffsetFunction, FunctionType::get(type, /*isVarArg=*/false));
  auto* base = cast<Instruction>(builder.CreateAnd(&x, builder.getInt32(~(kCoarsenedThreads - 1))));
  // The mask makes its other bits known.
  Value* half_offset = builder.CreateAnd(builder.CreateCall(callee), builder.getInt32(kLanes));
  Value* position = builder.Insert(BinaryOperator::CreateDisjoint(Instruction::Or, base, half_offset));
  x.replaceUsesWithIf(position, [&](Use& use) { return use.getUser() != base; });
  HalfOffsetElimination elimination{half_offset, function.getDataLayout()};
  // Once for each value, in program order.
  ReversePostOrderTraversal<Function*> order(&function);
  for (BasicBlock* block : order)
    for (Instruction& instruction : make_early_inc_range(*block)) {
      if (!instruction.getType()->isIntegerTy() || !elimination.depends(&instruction)) continue;
      if (Value* independent =
              elimination.without_half(&instruction, APInt::getAllOnes(instruction.getType()->getIntegerBitWidth())))
        instruction.replaceAllUsesWith(independent);
    }
  // Erase instructions that were created on the way, too.
  for (BasicBlock& block : function)
    for (Instruction& instruction : make_early_inc_range(reverse(block)))
      if (isInstructionTriviallyDead(&instruction)) instruction.eraseFromParent();
}

bool halves_share_work(Function& function, const Divergence& divergence) {
  DenseSet<const Value*> of_half, of_pair;
  of_pair.insert(function.getArg(kRowX));
  unsigned shared = 0;
  // A value carried around a loop counts if its operands precede it in this order.
  ReversePostOrderTraversal<Function*> order(&function);
  for (const BasicBlock* block : order)
    for (const Instruction& instruction : *block) {
      auto any_in = [&](const DenseSet<const Value*>& values) {
        return any_of(instruction.operands(), [&](const Use& use) { return values.contains(use.get()); });
      };
      if (call_of_half(&instruction) || any_in(of_half)) {
        of_half.insert(&instruction);
      } else if (any_in(of_pair) && !divergence.is_divergent(&instruction)) {
        of_pair.insert(&instruction);
        ++shared;
      }
    }
  if (shared < kLeastShared)
    remark("thread-coarsening", function, "two simdgroups would share ", shared,
           shared == 1 ? " instruction" : " instructions", ", and fewer than ", kLeastShared,
           " are not worth a loop over the two");
  return shared >= kLeastShared;
}

CoarsenedLoop coarsened_loop_of(const Loop& outer) {
  auto counter = [](const Loop& loop, unsigned by) -> PHINode* {
    for (PHINode& phi : loop.getHeader()->phis()) {
      BinaryOperator* next;
      Value *first, *step;
      if (matchSimpleRecurrence(&phi, next, first, step) && next->getOpcode() == Instruction::Add &&
          match(first, m_Zero()) && match(step, m_SpecificInt(by)))
        return &phi;
    }
    return nullptr;
  };
  if (outer.getSubLoops().size() != 1) return {};
  Loop* loop = outer.getSubLoops()[0];
  PHINode *x = counter(outer, kCoarsenedThreads), *half_offset = counter(*loop, kLanes);
  if (!x || !half_offset || !loop->getLoopPreheader()) return {};
  return {x, loop, half_offset};
}

Value* copy_before(const CoarsenedLoop& halves, const Instruction& instruction, ArrayRef<Value*> operands) {
  Instruction* copy = instruction.clone();
  for (auto [use, operand] : zip(copy->operands(), operands)) use.set(operand);
  copy->dropPoisonGeneratingAnnotations();
  copy->insertBefore(halves.insertion_point());
  Value* simpler = simplifyInstruction(copy, copy->getDataLayout());
  if (!simpler) return copy;
  copy->eraseFromParent();
  return simpler;
}

void lower_half_offset(Function& function, Value* half_offset) {
  for (Instruction& instruction : make_early_inc_range(instructions(function)))
    if (call_of_half(&instruction)) {
      instruction.replaceAllUsesWith(half_offset);
      instruction.eraseFromParent();
    }
  if (Function* callee = function.getParent()->getFunction(kHalfOffsetFunction); callee && callee->use_empty())
    callee->eraseFromParent();
}

}  // namespace kiln
