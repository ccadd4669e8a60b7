#include "compiler/lowering/ldexp.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/ir/pseudo_intrinsics.h"

namespace kiln {

using namespace llvm;

namespace {

constexpr const char* kScaled = "__kiln_scaled";

}  // namespace

bool is_ldexp(const Instruction& instruction) { return calls(instruction, kScaled); }

void describe_ldexp(Module& module) {
  if (Function* function = module.getFunction(kScaled)) set_speculatable(*function);
}

// Multiplies by half of the exponent's power and then by the other half, since 2^n itself may not be a float. The first
// product is exact.
void expand_ldexp(Module& module) {
  replace_calls(module, kScaled, [](CallInst& call) {
    IRBuilder<> builder(&call);
    Value *value = call.getArgOperand(0), *exponent = call.getArgOperand(2);
    auto power_of_two = [&](Value* n) {
      return builder.CreateBitCast(builder.CreateShl(builder.CreateAdd(n, builder.getInt32(127)), 23),
                                   builder.getFloatTy());
    };
    Value* half = builder.CreateAShr(exponent, 1);
    value = builder.CreateFMul(value, power_of_two(half));
    return builder.CreateFMul(value, power_of_two(builder.CreateSub(exponent, half)));
  });
}

Value* scale_by_instruction(Value* values, Value* exponents, IRBuilder<>& builder) {
  constexpr unsigned kWidth = 16;
  constexpr uint32_t kCurrentRounding = 4;
  unsigned count = cast<FixedVectorType>(values->getType())->getNumElements();
  SmallVector<Value*> parts;
  for (unsigned first = 0; first < count; first += kWidth) {
    auto part = [&](Value* whole) {
      return builder.CreateShuffleVector(whole, createSequentialMask(first, kWidth, 0));
    };
    Value* one = part(values);
    parts.push_back(builder.CreateIntrinsic(Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                                            {one, part(exponents), Constant::getNullValue(one->getType()),
                                             builder.getInt16(0xffff), builder.getInt32(kCurrentRounding)}));
  }
  return concatenateVectors(builder, parts);
}

}  // namespace kiln
