#include "compiler/lowering/ldexp.h"

#include <llvm/Analysis/VectorUtils.h>

#include "compiler/ir/pseudo_intrinsics.h"

namespace kiln {

using namespace llvm;

bool is_ldexp(const Instruction& instruction) { return calls(instruction, kLdexpFunction); }

// Multiplies by half of the exponent's power and then by the other half, since 2^n itself may not be a float. The first
// product is exact.
void expand_ldexp(Module& module) {
  replace_calls(module, kLdexpFunction, [](CallInst& call) {
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

Value* scale_by_instruction(Value* values, Value* exponents, const VectorIsa& vector_isa, IRBuilder<>& builder) {
  const unsigned width = vector_isa.num_words(), count = cast<FixedVectorType>(values->getType())->getNumElements();
  SmallVector<Value*> parts;
  for (unsigned first = 0; first < count; first += width) {
    auto part = [&](Value* whole) { return builder.CreateShuffleVector(whole, createSequentialMask(first, width, 0)); };
    Value* one = part(values);
    parts.push_back(vector_isa.scale(one, part(exponents), builder));
  }
  return concatenateVectors(builder, parts);
}

}  // namespace kiln
