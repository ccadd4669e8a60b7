#include "compiler/nvptx/approximations.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/lowering/approximations.h"

namespace kiln {

using namespace llvm;

void approximate_for_gpu(Module& module) {
  replace_calls(module, kRsqrtFunction, [](CallInst& call) {
    return IRBuilder<>(&call).CreateIntrinsic(Intrinsic::nvvm_rsqrt_approx_f, {}, {call.getArgOperand(0)});
  });
}

}  // namespace kiln
