// Folds integer operations that C++ leaves undefined to the value that they have at run time, after
// `lowering/defined_arithmetic.h`. LLVM would fold them to poison while Clang generates IR, before any pass runs.
//
// The linker substitutes this function for LLVM's (--wrap in CMakeLists.txt). Conversions of floats to integers need no
// such patch: Clang has an option for them (`clang_session.cpp`).
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instruction.h>

namespace {

using namespace llvm;

#define KILN_FOLD "_ZN4llvm29ConstantFoldBinaryInstructionEjPNS_8ConstantES1_"
Constant* fold(unsigned opcode, Constant* left, Constant* right) asm("__real_" KILN_FOLD);

// The right operand with which the operation is defined and has Kiln's result.
APInt defined_operand(unsigned opcode, const APInt& left, const APInt& right) {
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
    right = ConstantInt::get(b->getType(), defined_operand(opcode, a->getValue(), b->getValue()));
  return fold(opcode, left, right);
}
