#include "compiler/x86/int4_to_float.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

namespace kiln {

using namespace llvm;
using namespace llvm::PatternMatch;

void convert_int4_by_table(Module& module) {
  constexpr unsigned kWidth = 16;
  SmallVector<CastInst*> conversions;
  for (Function& function : module)
    for (Instruction& instruction : instructions(function)) {
      auto* type = dyn_cast<FixedVectorType>(instruction.getType());
      const APInt* mask;
      if (isa<UIToFPInst, SIToFPInst>(instruction) && type && type->getElementType()->isFloatTy() &&
          type->getNumElements() % kWidth == 0 &&
          instruction.getOperand(0)->getType()->getScalarType()->isIntegerTy(32) &&
          match(instruction.getOperand(0), m_And(m_Value(), m_APInt(mask))) && mask->ult(kWidth))
        conversions.push_back(cast<CastInst>(&instruction));
    }
  for (CastInst* conversion : conversions) {
    IRBuilder<> builder(conversion);
    Value* words = nullptr;
    const APInt* mask = nullptr;
    match(conversion->getOperand(0), m_And(m_Value(words), m_APInt(mask)));
    SmallVector<Constant*> numbers;
    for (unsigned bits = 0; bits < kWidth; ++bits)
      numbers.push_back(ConstantFP::get(builder.getFloatTy(), static_cast<double>(bits & mask->getZExtValue())));
    Constant* table = ConstantVector::get(numbers);
    SmallVector<Value*> parts;
    for (unsigned first = 0; first < cast<FixedVectorType>(words->getType())->getNumElements(); first += kWidth)
      parts.push_back(
          builder.CreateIntrinsic(Intrinsic::x86_avx512_permvar_sf_512, {},
                                  {table, builder.CreateShuffleVector(words, createSequentialMask(first, kWidth, 0))}));
    conversion->replaceAllUsesWith(concatenateVectors(builder, parts));
    conversion->eraseFromParent();
  }
}

}  // namespace kiln
