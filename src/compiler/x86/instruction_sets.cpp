#include "compiler/x86/instruction_sets.h"

#include <llvm/IR/IntrinsicsX86.h>

namespace kiln {
namespace {

using namespace llvm;

constexpr uint16_t kAllLanes = 0xffff;
constexpr uint32_t kCurrentRounding = 4;

Value* permute_512(Value* low, Value* high, Value* indices, IRBuilderBase& builder) {
  return builder.CreateIntrinsic(Intrinsic::x86_avx512_vpermi2var_d_512, {}, {low, indices, high});
}

Value* estimate_rsqrt_512(Value* values, IRBuilderBase& builder) {
  return builder.CreateIntrinsic(Intrinsic::x86_avx512_rsqrt14_ps_512, {},
                                 {values, Constant::getNullValue(values->getType()), builder.getInt16(kAllLanes)});
}

// In a register: to memory, some processors take a hundred cycles.
Value* compress_512(Value* values, Value* mask, IRBuilderBase& builder) {
  return builder.CreateIntrinsic(Intrinsic::x86_avx512_mask_compress, {values->getType()},
                                 {values, Constant::getNullValue(values->getType()), mask});
}

Value* estimate_rsqrt_256(Value* values, IRBuilderBase& builder) {
  return builder.CreateIntrinsic(Intrinsic::x86_avx_rsqrt_ps_256, {}, {values});
}

Value* scale_512(Value* values, Value* exponents, IRBuilderBase& builder) {
  return builder.CreateIntrinsic(Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                                 {values, exponents, Constant::getNullValue(values->getType()),
                                  builder.getInt16(kAllLanes), builder.getInt32(kCurrentRounding)});
}

}  // namespace

VectorIsa vector_isa_of(std::string_view cpu) {
  VectorIsa isa;
  if (cpu == "x86-64-v4") {
    isa.num_registers = 32;
    isa.register_bytes = 64;
    isa.refusal = "";
    isa.has_mask_registers = true;
    isa.masks_small_elements = true;
    isa.has_gathers = true;
    isa.has_scatters = true;
    isa.has_table_of_16_floats = true;
    isa.estimates_rsqrt_to_14_bits = true;
    isa.permute_two_registers = permute_512;
    isa.compress = compress_512;
    isa.estimate_rsqrt = estimate_rsqrt_512;
    isa.scale = scale_512;
  } else if (cpu == kLowestSimdCpu) {
    isa.num_registers = 16;
    isa.register_bytes = 32;
    isa.refusal = "";
    isa.estimate_rsqrt = estimate_rsqrt_256;
  } else {
    isa.num_registers = 16;
    isa.register_bytes = 16;
    isa.refusal = "it needs AVX2";
  }
  return isa;
}

}  // namespace kiln
