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

Value* permute_register_512(Value* values, Value* indices, IRBuilderBase& builder) {
  return builder.CreateIntrinsic(Intrinsic::x86_avx512_permvar_si_512, {}, {values, indices});
}

Value* permute_register_256(Value* values, Value* indices, IRBuilderBase& builder) {
  return builder.CreateIntrinsic(Intrinsic::x86_avx2_permd, {}, {values, indices});
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

// The numbers of a mask's lanes, a byte each, by the mask.
GlobalVariable* numbers_by_mask(Module& module) {
  static constexpr const char* kName = "__kiln_lanes_of_masks";
  if (GlobalVariable* made = module.getNamedGlobal(kName)) return made;
  SmallVector<uint64_t> rows;
  for (unsigned mask = 0; mask < 256; ++mask) {
    uint64_t row = 0;
    unsigned count = 0;
    for (uint64_t lane = 0; lane < 8; ++lane)
      if ((mask >> lane) & 1) row |= lane << (8 * count++);
    rows.push_back(row);
  }
  Constant* values = ConstantDataArray::get(module.getContext(), rows);
  auto* table = new GlobalVariable(module, values->getType(), true, GlobalValue::InternalLinkage, values, kName);
  table->setAlignment(Align(64));
  return table;
}

// A permutation by a table, since deposits and extracts of bits are slow on some processors. Behind the elements come
// others of them, not zeros.
Value* compress_256(Value* values, Value* mask, IRBuilderBase& builder) {
  auto* type = cast<FixedVectorType>(values->getType());
  const bool is_wide = type->getNumElements() == 4;
  Value* bits =
      builder.CreateZExt(builder.CreateBitCast(mask, builder.getIntNTy(type->getNumElements())), builder.getInt32Ty());
  if (is_wide) {
    // A bit for each half.
    Value* spread = builder.getInt32(0);
    for (unsigned lane = 0; lane < 4; ++lane)
      spread = builder.CreateOr(spread, builder.CreateShl(builder.CreateAnd(bits, 1U << lane), lane));
    bits = builder.CreateMul(spread, builder.getInt32(3));
  }
  GlobalVariable* table = numbers_by_mask(*builder.GetInsertBlock()->getModule());
  Type* bytes = FixedVectorType::get(builder.getInt8Ty(), 8);
  Value* row = builder.CreateInBoundsGEP(builder.getInt64Ty(), table, builder.CreateZExt(bits, builder.getInt64Ty()));
  Type* words = FixedVectorType::get(builder.getInt32Ty(), 8);
  Value* sources = builder.CreateZExt(builder.CreateAlignedLoad(bytes, row, Align(8)), words);
  return builder.CreateBitCast(permute_register_256(builder.CreateBitCast(values, words), sources, builder), type);
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
    isa.gathers_always_pay = true;
    isa.has_scatters = true;
    isa.has_table_of_16_floats = true;
    isa.estimates_rsqrt_to_14_bits = true;
    isa.permute_two_registers = permute_512;
    isa.permute_register = permute_register_512;
    isa.compress = compress_512;
    isa.estimate_rsqrt = estimate_rsqrt_512;
    isa.scale = scale_512;
  } else if (cpu == kLowestSimdCpu) {
    isa.num_registers = 16;
    isa.register_bytes = 32;
    isa.refusal = "";
    isa.has_gathers = true;
    isa.permute_register = permute_register_256;
    isa.compress = compress_256;
    isa.estimate_rsqrt = estimate_rsqrt_256;
  } else {
    isa.num_registers = 16;
    isa.register_bytes = 16;
    isa.refusal = "it needs AVX2";
  }
  return isa;
}

}  // namespace kiln
