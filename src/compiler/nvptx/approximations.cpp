#include "compiler/nvptx/approximations.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <iterator>

#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/lowering/approximations.h"
#include "kiln/error.h"

namespace kiln {

using namespace llvm;

void approximate_for_gpu(Module& module) {
  replace_calls(module, kRsqrtFunction, [](CallInst& call) {
    return IRBuilder<>(&call).CreateIntrinsic(Intrinsic::nvvm_rsqrt_approx_ftz_f, {}, {call.getArgOperand(0)});
  });
  // In the order of `approximation` in device/engine/thread.h.
  constexpr Intrinsic::ID kInstructions[] = {Intrinsic::nvvm_ex2_approx_ftz_f,  Intrinsic::nvvm_lg2_approx_ftz_f,
                                             Intrinsic::nvvm_sin_approx_ftz_f,  Intrinsic::nvvm_cos_approx_ftz_f,
                                             Intrinsic::nvvm_rcp_approx_ftz_f,  Intrinsic::nvvm_sqrt_approx_ftz_f,
                                             Intrinsic::nvvm_rsqrt_approx_ftz_f};
  replace_calls(module, kApproximateFunction, [&](CallInst& call) {
    const auto* which = dyn_cast<ConstantInt>(call.getArgOperand(0));
    if (!which || which->getZExtValue() >= std::size(kInstructions)) throw InternalError("an unknown approximation");
    return IRBuilder<>(&call).CreateIntrinsic(kInstructions[which->getZExtValue()], {}, {call.getArgOperand(1)});
  });
}

void round_rsqrt_for_gpu(Module& module) {
  replace_calls(module, kRoundedRsqrtFunction, [](CallInst& call) {
    IRBuilder<> builder(&call);
    Value* x = call.getArgOperand(0);
    // Within 2^-22.9 of the value, and of subnormal numbers as of others.
    return round_rsqrt(x, builder.CreateIntrinsic(Intrinsic::nvvm_rsqrt_approx_f, {}, {x}), builder);
  });
}

}  // namespace kiln
