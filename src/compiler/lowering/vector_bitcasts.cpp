#include "compiler/lowering/vector_bitcasts.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

namespace kiln {

using namespace llvm;
using namespace llvm::PatternMatch;

void extract_components(Function& function) {
  for (Instruction& instruction : make_early_inc_range(instructions(function))) {
    auto* truncation = dyn_cast<TruncInst>(&instruction);
    if (!truncation || truncation->getType()->isVectorTy()) continue;
    Value* bits = truncation->getOperand(0);
    uint64_t shift = 0;
    if (const APInt * amount; match(bits, m_LShr(m_Value(), m_APInt(amount)))) {
      shift = amount->getLimitedValue();
      bits = cast<Instruction>(bits)->getOperand(0);
    }
    while (auto* cast = dyn_cast<BitCastInst>(bits)) bits = cast->getOperand(0);
    auto* type = dyn_cast<FixedVectorType>(bits->getType());
    if (!type) continue;
    const unsigned width = type->getScalarSizeInBits();
    if (width != truncation->getType()->getIntegerBitWidth() || shift % width != 0) continue;
    const auto index = static_cast<unsigned>(shift / width);
    if (index >= type->getNumElements()) continue;
    IRBuilder<> builder(truncation);
    Value* component = findScalarElement(bits, index);
    if (!component) component = builder.CreateExtractElement(bits, index);
    truncation->replaceAllUsesWith(builder.CreateBitCast(component, truncation->getType()));
    truncation->eraseFromParent();
  }
}

void spell_out_bitcasts(Function& function) {
  for (Instruction& instruction : make_early_inc_range(instructions(function))) {
    auto* conversion = dyn_cast<BitCastInst>(&instruction);
    if (!conversion) continue;
    auto* from = dyn_cast<FixedVectorType>(conversion->getSrcTy());
    auto* to = dyn_cast<FixedVectorType>(conversion->getDestTy());
    if ((!from && !to) || (from && to && from->getNumElements() == to->getNumElements())) continue;
    IRBuilder<> builder(conversion);
    Value* bits = conversion->getOperand(0);
    Type* whole = builder.getIntNTy(static_cast<unsigned>(conversion->getSrcTy()->getPrimitiveSizeInBits()));
    if (from) {
      unsigned width = from->getScalarSizeInBits();
      Value* all = ConstantInt::get(whole, 0);
      for (unsigned i = 0; i < from->getNumElements(); ++i) {
        // A component may be poison, as the fourth of three is. Poison must not spread to all of them.
        Value* component = builder.CreateFreeze(builder.CreateExtractElement(bits, i));
        Value* component_bits = builder.CreateBitCast(component, builder.getIntNTy(width));
        all = builder.CreateOr(all, builder.CreateShl(builder.CreateZExt(component_bits, whole), i * width));
      }
      bits = all;
    } else {
      bits = builder.CreateBitCast(bits, whole);
    }
    Value* result;
    if (to) {
      unsigned width = to->getScalarSizeInBits();
      result = PoisonValue::get(to);
      for (unsigned i = 0; i < to->getNumElements(); ++i) {
        Value* component_bits = builder.CreateTrunc(builder.CreateLShr(bits, i * width), builder.getIntNTy(width));
        result = builder.CreateInsertElement(result, builder.CreateBitCast(component_bits, to->getElementType()), i);
      }
    } else {
      result = builder.CreateBitCast(bits, conversion->getDestTy());
    }
    conversion->replaceAllUsesWith(result);
    conversion->eraseFromParent();
  }
}

}  // namespace kiln
