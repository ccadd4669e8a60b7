#include "compiler/passes/rsqrt_estimates.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>

namespace kiln {

using namespace llvm;

namespace {

constexpr const char* kEstimate = "__kiln_rsqrt_estimate";

}  // namespace

bool is_rsqrt_estimate(const Instruction& instruction) {
  const auto* call = dyn_cast<CallInst>(&instruction);
  return call && call->getCalledFunction() && call->getCalledFunction()->getName() == kEstimate;
}

void describe_rsqrt_estimates(Module& module) {
  Function* function = module.getFunction(kEstimate);
  if (!function) return;
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  function->setSpeculatable();
}

void expand_rsqrt_estimates(Module& module) {
  Function* function = module.getFunction(kEstimate);
  if (!function) return;
  for (User* user : make_early_inc_range(function->users())) {
    auto* call = cast<CallInst>(user);
    IRBuilder<> builder(call);
    Value* root = builder.CreateUnaryIntrinsic(Intrinsic::sqrt, call->getArgOperand(0));
    call->replaceAllUsesWith(builder.CreateFDiv(ConstantFP::get(call->getType(), 1), root));
    call->eraseFromParent();
  }
  function->eraseFromParent();
}

Value* estimate_rsqrt(Value* values, IRBuilder<>& builder) {
  constexpr unsigned kWidth = 16;
  unsigned count = cast<FixedVectorType>(values->getType())->getNumElements();
  SmallVector<Value*> parts;
  for (unsigned first = 0; first < count; first += kWidth) {
    Value* part = builder.CreateShuffleVector(values, createSequentialMask(first, kWidth, 0));
    parts.push_back(builder.CreateIntrinsic(Intrinsic::x86_avx512_rsqrt14_ps_512, {},
                                            {part, Constant::getNullValue(part->getType()), builder.getInt16(0xffff)}));
  }
  Value* rough = concatenateVectors(builder, parts);
  auto number = [&](double value) { return ConstantFP::get(values->getType(), value); };
  auto fma = [&](Value* a, Value* b, Value* c) {
    return builder.CreateIntrinsic(Intrinsic::fma, {values->getType()}, {a, b, c});
  };
  Value* residual = fma(builder.CreateFNeg(builder.CreateFMul(values, rough)), rough, number(1));
  Value* better = fma(builder.CreateFMul(rough, number(0.5)), residual, rough);
  // Of 0, infinity, negative numbers and NaNs the instruction gives what a root and a division do.
  Value* is_ordinary = builder.CreateAnd(builder.CreateFCmpOGT(values, number(0)),
                                         builder.CreateFCmpOLT(values, ConstantFP::getInfinity(values->getType())));
  return builder.CreateSelect(is_ordinary, better, rough);
}

}  // namespace kiln
