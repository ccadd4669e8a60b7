// Saturating conversions of floating-point numbers to integers. LLVM takes them apart into lanes where the processor
// has vector instructions for numbers that fit alone: numbers are made to fit before, and what was not is chosen
// afterwards.
#include <llvm/ADT/APFloat.h>

#include "compiler/vectorize/widener_arithmetic.h"

namespace kiln::widening {

// A conversion of numbers that are made to fit before. Metal's result for what does not fit is the nearest integer, and
// 0 for NaN.
Value* Arithmetic::widen_saturating_conversion(IntrinsicInst& call, IRBuilder<>& builder) {
  const bool is_signed = call.getIntrinsicID() == Intrinsic::fptosi_sat;
  const unsigned bits = call.getType()->getScalarSizeInBits();
  Value* from = lanes_.vector(call.getArgOperand(0), builder);
  // Every half is a float.
  if (from->getType()->getScalarType()->isHalfTy()) from = builder.CreateFPExt(from, vector_of(builder.getFloatTy()));
  Type* real = from->getType();
  const fltSemantics& format = real->getScalarType()->getFltSemantics();
  const APInt least = is_signed ? APInt::getSignedMinValue(bits) : APInt::getZero(bits);
  const APInt most = is_signed ? APInt::getSignedMaxValue(bits) : APInt::getMaxValue(bits);
  APFloat low(format), high(format);
  low.convertFromAPInt(least, is_signed, APFloat::rmTowardZero);
  const bool is_exact = high.convertFromAPInt(most, is_signed, APFloat::rmTowardZero) == APFloat::opOK;
  auto constant = [&](const APFloat& number) { return ConstantFP::get(real, number); };
  // NaN becomes the lowest number: each selection is one instruction, which takes its second operand then.
  Value* fitting = builder.CreateSelect(builder.CreateFCmpOGT(from, constant(low)), from, constant(low));
  fitting = builder.CreateSelect(builder.CreateFCmpOLT(fitting, constant(high)), fitting, constant(high));
  // There are instructions for words, and what fits into fewer bits is the same as a signed word.
  Type* type = vector_of(bits < 32 ? builder.getInt32Ty() : call.getType());
  Value* converted = is_signed || bits < 32 ? builder.CreateFPToSI(fitting, type) : builder.CreateFPToUI(fitting, type);
  if (bits < 32) converted = builder.CreateTrunc(converted, vector_of(call.getType()));
  if (!is_exact)
    converted = builder.CreateSelect(builder.CreateFCmpOGT(from, constant(high)),
                                     ConstantInt::get(converted->getType(), most), converted);
  if (is_signed)
    converted = builder.CreateSelect(builder.CreateFCmpORD(from, Constant::getNullValue(real)), converted,
                                     Constant::getNullValue(converted->getType()));
  return converted;
}

}  // namespace kiln::widening
