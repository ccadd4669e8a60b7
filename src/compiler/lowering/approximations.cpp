#include "compiler/lowering/approximations.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/Transforms/Utils/Local.h>

#include "compiler/ir/pseudo_intrinsics.h"

namespace kiln {

using namespace llvm;

bool is_rsqrt(const Instruction& instruction) { return calls(instruction, kRsqrtFunction); }

bool is_rounded_rsqrt(const Instruction& instruction) { return calls(instruction, kRoundedRsqrtFunction); }

void expand_approximations(Module& module) {
  replace_calls(module, kRsqrtFunction, [](CallInst& call) { return call.getArgOperand(1); });
}

void expand_rounded_rsqrt(Module& module) {
  replace_calls(module, kRoundedRsqrtFunction, [](CallInst& call) { return call.getArgOperand(1); });
}

void fold_approximations(Module& module, bool are_used) {
  SmallSetVector<Function*, 8> functions;
  replace_calls(module, kApproximatesFunction, [&](CallInst& call) {
    functions.insert(call.getFunction());
    return ConstantInt::getBool(call.getContext(), are_used);
  });
  for (Function* function : functions) {
    for (BasicBlock& block : *function) ConstantFoldTerminator(&block, /*DeleteDeadConditions=*/true);
    removeUnreachableBlocks(*function);
  }
  // In functions that nothing calls any more.
  if (!are_used)
    replace_calls(module, kApproximateFunction, [](CallInst& call) { return Constant::getNullValue(call.getType()); });
}

namespace {

// A register after the other.
Value* estimate_rsqrt(Value* values, const VectorIsa& vector_isa, IRBuilder<>& builder) {
  const unsigned width = vector_isa.num_words(), count = cast<FixedVectorType>(values->getType())->getNumElements();
  SmallVector<Value*> parts;
  for (unsigned first = 0; first < count; first += width)
    parts.push_back(
        vector_isa.estimate_rsqrt(builder.CreateShuffleVector(values, createSequentialMask(first, width, 0)), builder));
  return concatenateVectors(builder, parts);
}

}  // namespace

Value* approximate_rsqrt(Value* values, const VectorIsa& vector_isa, IRBuilder<>& builder) {
  // The residual is a rounding error, which contraction would change.
  IRBuilderBase::FastMathFlagGuard guard(builder);
  builder.clearFastMathFlags();
  Value* estimate = estimate_rsqrt(values, vector_isa, builder);
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

Value* round_rsqrt(Value* values, Value* estimate, IRBuilder<>& builder) {
  IRBuilderBase::FastMathFlagGuard guard(builder);
  builder.clearFastMathFlags();
  Type* type = values->getType();
  auto number = [&](double value) { return ConstantFP::get(type, value); };
  auto fma = [&](Value* a, Value* b, Value* c) { return builder.CreateIntrinsic(Intrinsic::fma, {type}, {a, b, c}); };
  // Of 0 and infinity a residual is a NaN. Any other number in its place leaves the estimate as it is.
  auto bounded = [&](Value* residual, double bound) {
    return builder.CreateSelect(builder.CreateFCmpOLT(residual, number(bound)), residual, number(bound));
  };
  Value* product = builder.CreateFMul(values, estimate);
  Value* residual = bounded(fma(builder.CreateFNeg(product), estimate, number(1)), 0x1p-11);
  Value* near = fma(builder.CreateFMul(estimate, number(0.5)), residual, estimate);
  product = builder.CreateFMul(values, near);
  Value* low = fma(values, near, builder.CreateFNeg(product));
  residual = fma(builder.CreateFNeg(low), near, fma(builder.CreateFNeg(product), near, number(1)));
  residual = bounded(residual, 0x1p-20);
  return fma(builder.CreateFMul(near, residual), fma(residual, number(0.375), number(0.5)), near);
}

Value* round_rsqrt(Value* values, const VectorIsa& vector_isa, IRBuilder<>& builder) {
  return round_rsqrt(values, estimate_rsqrt(values, vector_isa, builder), builder);
}

}  // namespace kiln
