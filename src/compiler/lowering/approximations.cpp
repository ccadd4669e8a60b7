#include "compiler/lowering/approximations.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/ir/pseudo_intrinsics.h"

namespace kiln {

using namespace llvm;

namespace {

constexpr const char* kRsqrt = "__kiln_rsqrt";

}  // namespace

bool is_rsqrt(const Instruction& instruction) { return calls(instruction, kRsqrt); }

void describe_approximations(Module& module) {
  if (Function* function = module.getFunction(kRsqrt)) set_speculatable(*function);
}

void expand_approximations(Module& module) {
  replace_calls(module, kRsqrt, [](CallInst& call) { return call.getArgOperand(1); });
}

void approximate_for_gpu(Module& module) {
  replace_calls(module, kRsqrt, [](CallInst& call) {
    return IRBuilder<>(&call).CreateIntrinsic(Intrinsic::nvvm_rsqrt_approx_f, {}, {call.getArgOperand(0)});
  });
}

Value* approximate_rsqrt(Value* values, bool has_avx512, IRBuilder<>& builder) {
  const unsigned width = has_avx512 ? 16 : 8, count = cast<FixedVectorType>(values->getType())->getNumElements();
  SmallVector<Value*> parts;
  for (unsigned first = 0; first < count; first += width) {
    Value* part = builder.CreateShuffleVector(values, createSequentialMask(first, width, 0));
    parts.push_back(
        has_avx512 ? builder.CreateIntrinsic(Intrinsic::x86_avx512_rsqrt14_ps_512, {},
                                             {part, Constant::getNullValue(part->getType()), builder.getInt16(0xffff)})
                   : builder.CreateIntrinsic(Intrinsic::x86_avx_rsqrt_ps_256, {}, {part}));
  }
  Value* estimate = concatenateVectors(builder, parts);
  auto number = [&](double value) { return ConstantFP::get(values->getType(), value); };
  auto fma = [&](Value* a, Value* b, Value* c) {
    return builder.CreateIntrinsic(Intrinsic::fma, {values->getType()}, {a, b, c});
  };
  Value* residual = fma(builder.CreateFNeg(builder.CreateFMul(values, estimate)), estimate, number(1));
  Value* better =
      has_avx512 ? fma(builder.CreateFMul(estimate, number(0.5)), residual, estimate)
                 : fma(builder.CreateFMul(estimate, residual), fma(residual, number(0.375), number(0.5)), estimate);
  // For 0 and infinity the residual is a NaN, and the estimate is the value.
  return builder.CreateSelect(builder.CreateFCmpORD(residual, number(0)), better, estimate);
}

}  // namespace kiln
