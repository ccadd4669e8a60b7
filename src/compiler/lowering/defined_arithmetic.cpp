#include "compiler/lowering/defined_arithmetic.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/PatternMatch.h>

namespace kiln {
namespace {

using namespace llvm;

void mask_shift_amount(BinaryOperator& shift) {
  IRBuilder<> builder(&shift);
  unsigned width = shift.getType()->getScalarSizeInBits();
  // Shifts come from C++ integers, whose widths are powers of two.
  shift.setOperand(1, builder.CreateAnd(shift.getOperand(1), ConstantInt::get(shift.getType(), width - 1)));
}

void guard_division(BinaryOperator& division) {
  Type* type = division.getType();
  Value* divisor = division.getOperand(1);
  if (auto* constant = dyn_cast<ConstantInt>(divisor); constant && !constant->isZero() && !constant->isMinusOne())
    return;
  IRBuilder<> builder(&division);
  Value* one = ConstantInt::get(type, 1);
  Value* is_bad = builder.CreateICmpEQ(divisor, Constant::getNullValue(type));
  if (division.getOpcode() == Instruction::SDiv || division.getOpcode() == Instruction::SRem) {
    APInt smallest = APInt::getSignedMinValue(type->getScalarSizeInBits());
    Value* overflows = builder.CreateAnd(builder.CreateICmpEQ(division.getOperand(0), ConstantInt::get(type, smallest)),
                                         builder.CreateICmpEQ(divisor, Constant::getAllOnesValue(type)));
    is_bad = builder.CreateOr(is_bad, overflows);
  }
  division.setOperand(1, builder.CreateSelect(is_bad, one, divisor));
}

void saturate_conversion(CastInst& conversion) {
  IRBuilder<> builder(&conversion);
  Intrinsic::ID id = isa<FPToSIInst>(conversion) ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat;
  Value* saturated = builder.CreateIntrinsic(id, {conversion.getType(), conversion.getOperand(0)->getType()},
                                             {conversion.getOperand(0)});
  conversion.replaceAllUsesWith(saturated);
  conversion.eraseFromParent();
}

// The operand that building a vector or an aggregate starts from, which is not read, or the operand of a shuffle, for
// which see `close_lanes`.
bool is_safe_operand(const Instruction& instruction, unsigned operand) {
  return (isa<InsertElementInst, InsertValueInst>(instruction) && operand == 0) || isa<ShuffleVectorInst>(instruction);
}

void drop_unknown_operands(Instruction& instruction) {
  for (Use& use : instruction.operands())
    if (isa<UndefValue>(use.get()) && !is_safe_operand(instruction, use.getOperandNo()) &&
        !use->getType()->isMetadataTy() && !use->getType()->isTokenTy())
      use.set(Constant::getNullValue(use->getType()));
}

// A poison lane of a shuffle becomes zero. Three components are stored as four, and the vector may be copied as one
// integer: a poison lane would spoil the others.
void close_lanes(ShuffleVectorInst& shuffle) {
  auto* type = dyn_cast<FixedVectorType>(shuffle.getOperand(0)->getType());
  if (!type || !is_contained(shuffle.getShuffleMask(), PoisonMaskElem)) return;
  SmallVector<int> mask(shuffle.getShuffleMask());
  int zero_lane = 0;  // any lane, if no zero is at hand
  if (isa<UndefValue>(shuffle.getOperand(1))) {
    shuffle.setOperand(1, Constant::getNullValue(type));
    zero_lane = static_cast<int>(type->getNumElements());
  }
  for (int& lane : mask)
    if (lane == PoisonMaskElem) lane = zero_lane;
  shuffle.setShuffleMask(mask);
}

void end_block_with_return(UnreachableInst& unreachable) {
  Function& function = *unreachable.getFunction();
  IRBuilder<> builder(&unreachable);
  if (function.getReturnType()->isVoidTy())
    builder.CreateRetVoid();
  else
    builder.CreateRet(Constant::getNullValue(function.getReturnType()));
  unreachable.eraseFromParent();
}

bool is_promise_or_trap(const IntrinsicInst& intrinsic) {
  switch (intrinsic.getIntrinsicID()) {
    case Intrinsic::assume:
    case Intrinsic::trap:
    case Intrinsic::debugtrap:
    case Intrinsic::ubsantrap:
    case Intrinsic::experimental_noalias_scope_decl: return true;
    default: return false;
  }
}

void visit(Instruction& instruction) {
  drop_unknown_operands(instruction);
  if (!isa<FPMathOperator>(instruction)) instruction.dropPoisonGeneratingFlags();
  instruction.dropPoisonGeneratingMetadata();
  if (auto* binary = dyn_cast<BinaryOperator>(&instruction)) {
    switch (binary->getOpcode()) {
      case Instruction::Shl:
      case Instruction::LShr:
      case Instruction::AShr: mask_shift_amount(*binary); break;
      case Instruction::SDiv:
      case Instruction::UDiv:
      case Instruction::SRem:
      case Instruction::URem: guard_division(*binary); break;
      default: break;
    }
  } else if (isa<FPToSIInst, FPToUIInst>(instruction)) {
    saturate_conversion(cast<CastInst>(instruction));
  } else if (auto* shuffle = dyn_cast<ShuffleVectorInst>(&instruction)) {
    close_lanes(*shuffle);
  } else if (auto* unreachable = dyn_cast<UnreachableInst>(&instruction)) {
    end_block_with_return(*unreachable);
  } else if (auto* intrinsic = dyn_cast<IntrinsicInst>(&instruction)) {
    if (is_promise_or_trap(*intrinsic)) intrinsic->eraseFromParent();
  }
}

}  // namespace

void define_arithmetic(Module& module) {
  for (Function& function : module)
    for (Instruction& instruction : make_early_inc_range(instructions(function))) visit(instruction);
}

}  // namespace kiln
