// What operations give that C++ leaves undefined, when both operands are known: what they give at run time, after
// `lowering/defined_arithmetic.h`. LLVM folds them to poison while Clang writes its IR, before any pass could see them.
//
// The linker puts this function before LLVM's (--wrap in CMakeLists.txt). Conversions of floats to integers need
// nothing of this kind: Clang has an option for them (`clang_session.cpp`).
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instruction.h>

namespace {

using namespace llvm;

#define KILN_FOLD "_ZN4llvm29ConstantFoldBinaryInstructionEjPNS_8ConstantES1_"
Constant* fold(unsigned opcode, Constant* left, Constant* right) asm("__real_" KILN_FOLD);

// The right operand that makes the operation one that is defined.
APInt harmless(unsigned opcode, const APInt& left, const APInt& right) {
  switch (opcode) {
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::AShr: return right & APInt(right.getBitWidth(), right.getBitWidth() - 1);
    case Instruction::SDiv:
    case Instruction::SRem:
      if (left.isMinSignedValue() && right.isAllOnes()) return APInt(right.getBitWidth(), 1);
      [[fallthrough]];
    case Instruction::UDiv:
    case Instruction::URem: return right.isZero() ? APInt(right.getBitWidth(), 1) : right;
    default: return right;
  }
}

}  // namespace

Constant* kiln_fold(unsigned opcode, Constant* left, Constant* right) asm("__wrap_" KILN_FOLD);
Constant* kiln_fold(unsigned opcode, Constant* left, Constant* right) {
  auto* a = dyn_cast<ConstantInt>(left);
  auto* b = dyn_cast<ConstantInt>(right);
  if (a && b && a->getType()->isIntegerTy() && isPowerOf2_32(b->getBitWidth()))
    right = ConstantInt::get(b->getType(), harmless(opcode, a->getValue(), b->getValue()));
  return fold(opcode, left, right);
}
