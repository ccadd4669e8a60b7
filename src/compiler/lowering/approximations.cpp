#include "compiler/lowering/approximations.h"

#include <llvm/Analysis/VectorUtils.h>

#include "compiler/ir/pseudo_intrinsics.h"

namespace kiln {

using namespace llvm;

bool is_rsqrt(const Instruction& instruction) { return calls(instruction, kRsqrtFunction); }

void expand_approximations(Module& module) {
  replace_calls(module, kRsqrtFunction, [](CallInst& call) { return call.getArgOperand(1); });
}

Value* approximate_rsqrt(Value* values, const VectorIsa& vector_isa, IRBuilder<>& builder) {
  const unsigned width = vector_isa.num_words(), count = cast<FixedVectorType>(values->getType())->getNumElements();
  SmallVector<Value*> parts;
  for (unsigned first = 0; first < count; first += width)
    parts.push_back(
        vector_isa.estimate_rsqrt(builder.CreateShuffleVector(values, createSequentialMask(first, width, 0)), builder));
  Value* estimate = concatenateVectors(builder, parts);
  auto number = [&](double value) { return ConstantFP::get(values->getType(), value); };
  auto fma = [&](Value* a, Value* b, Value* c) {
    return builder.CreateIntrinsic(Intrinsic::fma, {values->getType()}, {a, b, c});
  };
  Value* residual = fma(builder.CreateFNeg(builder.CreateFMul(values, estimate)), estimate, number(1));
  Value* better =
      vector_isa.estimates_rsqrt_to_14_bits
          ? fma(builder.CreateFMul(estimate, number(0.5)), residual, estimate)
          : fma(builder.CreateFMul(estimate, residual), fma(residual, number(0.375), number(0.5)), estimate);
  // For 0 and infinity the residual is a NaN, and the estimate is the value.
  return builder.CreateSelect(builder.CreateFCmpORD(residual, number(0)), better, estimate);
}

}  // namespace kiln
