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
#include "compiler/ir/simdgroup.h"

namespace kiln {

using namespace llvm;
using namespace llvm::PatternMatch;

namespace {

constexpr const char* kHalfOffsetFunction = "__kiln_piece";
// Instructions: fewer are computed in the time that the loop takes.
constexpr unsigned kLeastShared = 16;

const CallInst* call_of_half(const Value* value) {
  const auto* call = dyn_cast<CallInst>(value);
  return call && calls(*call, kHalfOffsetFunction) ? call : nullptr;
}

// Values that depend on the piece by arithmetic on whole numbers.
class Separation {
 public:
  Separation(Value* piece, const DataLayout& layout) : piece_(piece), layout_(layout) {}

  bool depends(Value* value) {
    if (value == piece_) return true;
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || isa<PHINode>(instruction) || !instruction->getType()->isIntegerTy()) return false;
    auto [found, is_new] = depends_.insert({value, false});
    if (!is_new) return found->second;
    bool depends = any_of(instruction->operands(), [&](Use& use) { return this->depends(use.get()); });
    return depends_[value] = depends;
  }

  /// What has the bits of `wanted` as the value has them, and does not depend on the piece; or null.
  Value* without_half(Value* value, const APInt& wanted, unsigned depth = 0) {
    if (value == piece_) return wanted[Log2_32(kLanes)] ? nullptr : ConstantInt::get(value->getType(), 0);
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
        Value* first = operand(0, constant ? wanted & constant->getValue() : wanted);
        Value* second = first ? operand(1, wanted) : nullptr;
        return second ? builder.CreateAnd(first, second) : nullptr;
      }
      case Instruction::Or: {
        Value* first = operand(0, constant ? wanted & ~constant->getValue() : wanted);
        Value* second = first ? operand(1, wanted) : nullptr;
        return second ? builder.CreateOr(first, second) : nullptr;
      }
      case Instruction::Add: {
        // From the low bits nothing is carried where one number has none.
        if (wanted.countr_zero() < low) return nullptr;
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
        if (Value* shifted = operand(0, wanted.shl(constant->getValue()))) return builder.CreateLShr(shifted, constant);
        return nullptr;
      case Instruction::Shl:
        if (!constant || constant->getValue().uge(width)) return nullptr;
        if (Value* shifted = operand(0, wanted.lshr(constant->getValue()))) return builder.CreateShl(shifted, constant);
        return nullptr;
      case Instruction::UDiv:
        if (!constant || constant->getValue().countr_zero() < low || constant->isZero()) return nullptr;
        if (Value* number = operand(0, APInt::getHighBitsSet(width, width - low)))
          return builder.CreateUDiv(number, constant);
        return nullptr;
      case Instruction::ZExt: {
        unsigned from = instruction->getOperand(0)->getType()->getIntegerBitWidth();
        if (Value* narrow = operand(0, wanted.trunc(from))) return builder.CreateZExt(narrow, instruction->getType());
        return nullptr;
      }
      default: return nullptr;
    }
  }

 private:
  Value* piece_;
  const DataLayout& layout_;
  DenseMap<Value*, bool> depends_;
};

}  // namespace

void split_coarsened_positions(Function& function, Argument& x) {
  IRBuilder<> builder(&*function.getEntryBlock().getFirstInsertionPt());
  Type* type = x.getType();
  auto* callee = cast<Function>(function.getParent()->getOrInsertFunction(kHalfOffsetFunction, type).getCallee());
  set_speculatable(*callee);
  auto* run = cast<Instruction>(builder.CreateAnd(&x, builder.getInt32(~(kCoarsenedThreads - 1))));
  // So that its other bits are known.
  Value* piece = builder.CreateAnd(builder.CreateCall(callee), builder.getInt32(kLanes));
  Value* both = builder.Insert(BinaryOperator::CreateDisjoint(Instruction::Or, run, piece));
  x.replaceUsesWithIf(both, [&](Use& use) { return use.getUser() != run; });
  Separation separation{piece, function.getDataLayout()};
  // Once for each value, in the order of the code.
  ReversePostOrderTraversal<Function*> order(&function);
  for (BasicBlock* block : order)
    for (Instruction& instruction : make_early_inc_range(*block)) {
      if (!instruction.getType()->isIntegerTy() || !separation.depends(&instruction)) continue;
      if (Value* same =
              separation.without_half(&instruction, APInt::getAllOnes(instruction.getType()->getIntegerBitWidth())))
        instruction.replaceAllUsesWith(same);
    }
  // And what was made on the way.
  for (BasicBlock& block : function)
    for (Instruction& instruction : make_early_inc_range(reverse(block)))
      if (isInstructionTriviallyDead(&instruction)) instruction.eraseFromParent();
}

bool halves_share_work(Function& function, const Divergence& divergence) {
  DenseSet<const Value*> of_half, of_run;
  of_run.insert(function.getArg(3));
  unsigned shared = 0;
  // What goes round in a loop counts where it is computed from what came before.
  ReversePostOrderTraversal<Function*> order(&function);
  for (const BasicBlock* block : order)
    for (const Instruction& instruction : *block) {
      auto any_in = [&](const DenseSet<const Value*>& values) {
        return any_of(instruction.operands(), [&](const Use& use) { return values.contains(use.get()); });
      };
      if (call_of_half(&instruction) || any_in(of_half)) {
        of_half.insert(&instruction);
      } else if (any_in(of_run) && !divergence.is_divergent(&instruction)) {
        of_run.insert(&instruction);
        ++shared;
      }
    }
  return shared >= kLeastShared;
}

CoarsenedLoop coarsened_loop_of(const Loop& runs) {
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
  if (runs.getSubLoops().size() != 1) return {};
  Loop* loop = runs.getSubLoops()[0];
  PHINode *x = counter(runs, kCoarsenedThreads), *piece = counter(*loop, kLanes);
  if (!x || !piece || !loop->getLoopPreheader()) return {};
  return {x, loop, piece};
}

Value* copy_before(const CoarsenedLoop& pieces, const Instruction& instruction, ArrayRef<Value*> operands) {
  Instruction* copy = instruction.clone();
  for (auto [use, operand] : zip(copy->operands(), operands)) use.set(operand);
  copy->dropPoisonGeneratingAnnotations();
  copy->insertBefore(pieces.insertion_point());
  Value* simpler = simplifyInstruction(copy, copy->getDataLayout());
  if (!simpler) return copy;
  copy->eraseFromParent();
  return simpler;
}

void lower_half_offset(Function& function, Value* piece) {
  for (Instruction& instruction : make_early_inc_range(instructions(function)))
    if (call_of_half(&instruction)) {
      instruction.replaceAllUsesWith(piece);
      instruction.eraseFromParent();
    }
  if (Function* callee = function.getParent()->getFunction(kHalfOffsetFunction); callee && callee->use_empty())
    callee->eraseFromParent();
}

}  // namespace kiln
