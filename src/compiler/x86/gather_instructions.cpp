#include "compiler/x86/gather_instructions.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

constexpr unsigned kRegisterBytes = 32, kNarrowBits = 32;

// base + scale * indices
struct Address {
  Value *base, *indices;
  unsigned scale;

  bool is_narrow() const { return indices->getType()->getScalarSizeInBits() == kNarrowBits; }
};

Type* with_element(Type* vector, Type* element) {
  return FixedVectorType::get(element, cast<FixedVectorType>(vector)->getNumElements());
}

Address address_of(Value* addresses, const DataLayout& layout, IRBuilder<>& builder) {
  auto* gep = dyn_cast<GetElementPtrInst>(addresses);
  const bool is_split = gep && !gep->getPointerOperandType()->isVectorTy() && gep->getNumIndices() == 1 &&
                        gep->getOperand(1)->getType()->isVectorTy();
  const uint64_t scale = is_split ? layout.getTypeAllocSize(gep->getSourceElementType()).getFixedValue() : 1;
  Type* numbers = with_element(addresses->getType(), builder.getInt64Ty());
  if (!is_split || !isPowerOf2_64(scale) || scale > 8)
    return {ConstantPointerNull::get(builder.getPtrTy()), builder.CreatePtrToInt(addresses, numbers), 1};
  Value *base = gep->getPointerOperand(), *indices = gep->getOperand(1);
  const auto by = static_cast<unsigned>(scale);
  Type* words = with_element(addresses->getType(), builder.getInt32Ty());
  if (auto* extension = dyn_cast<CastInst>(indices);
      extension && isa<SExtInst, ZExtInst>(extension) && extension->getSrcTy()->getScalarSizeInBits() <= kNarrowBits) {
    Value* narrow = extension->getOperand(0);
    if (isa<SExtInst>(extension)) return {base, builder.CreateSExt(narrow, words), by};
    if (narrow->getType() != words) return {base, builder.CreateZExt(narrow, words), by};
    // The number as one without a sign, less 2^31.
    const uint64_t half = uint64_t{1} << (kNarrowBits - 1);
    Value* less = builder.CreateXor(narrow, ConstantInt::get(words, half));
    return {builder.CreateConstGEP1_64(builder.getInt8Ty(), base, half * scale), less, by};
  }
  if (indices->getType() != numbers) indices = builder.CreateSExtOrTrunc(indices, numbers);
  return {base, indices, by};
}

// A vector of the elements' size whose signs are the mask.
Value* signs_of(Value* mask, Type* numbers, IRBuilder<>& builder) {
  Value* words;
  if (match(mask, m_SpecificICmp(ICmpInst::ICMP_SLT, m_Value(words), m_Zero())) && words->getType() == numbers)
    return words;
  return builder.CreateSExt(mask, numbers);
}

Intrinsic::ID instruction_of(bool is_narrow, Type* element) {
  const bool is_word = element->getPrimitiveSizeInBits() == 32;
  if (element->isFloatingPointTy()) {
    if (is_narrow) return is_word ? Intrinsic::x86_avx2_gather_d_ps_256 : Intrinsic::x86_avx2_gather_d_pd_256;
    return is_word ? Intrinsic::x86_avx2_gather_q_ps_256 : Intrinsic::x86_avx2_gather_q_pd_256;
  }
  if (is_narrow) return is_word ? Intrinsic::x86_avx2_gather_d_d_256 : Intrinsic::x86_avx2_gather_d_q_256;
  return is_word ? Intrinsic::x86_avx2_gather_q_d_256 : Intrinsic::x86_avx2_gather_q_q_256;
}

bool select_instructions(IntrinsicInst& gather, const DataLayout& layout) {
  auto* type = cast<FixedVectorType>(gather.getType());
  Type* element = type->getElementType();
  const bool is_pointer = element->isPointerTy();
  const auto bits = static_cast<unsigned>(layout.getTypeSizeInBits(element).getFixedValue());
  const unsigned count = type->getNumElements();
  if ((bits != 32 && bits != 64) || !(element->isIntegerTy() || element->isFloatingPointTy() || is_pointer) ||
      count % (8 * kRegisterBytes / bits) != 0)
    return false;
  IRBuilder<> builder(&gather);
  Type* made_element = is_pointer ? builder.getInt64Ty() : element;
  Type *made = with_element(type, made_element), *numbers = with_element(type, builder.getIntNTy(bits));
  Address address = address_of(gather.getArgOperand(0), layout, builder);
  // The instruction is illegal if two of its registers are the same, as those of indices without a value may be: LLVM
  // gives these any register.
  address.indices = builder.CreateSelect(gather.getArgOperand(2), address.indices,
                                         Constant::getNullValue(address.indices->getType()));
  // Of the result's elements and of the indices, whichever fill a register first.
  const unsigned lanes = 8 * kRegisterBytes / std::max(bits, address.is_narrow() ? kNarrowBits : 64U);
  Value *signs = signs_of(gather.getArgOperand(2), numbers, builder), *otherwise = gather.getArgOperand(3);
  if (is_pointer) otherwise = builder.CreatePtrToInt(otherwise, made);
  signs = builder.CreateBitCast(signs, made);
  SmallVector<Value*> parts;
  for (unsigned first = 0; first < count; first += lanes) {
    auto part = [&](Value* all) { return builder.CreateShuffleVector(all, createSequentialMask(first, lanes, 0)); };
    parts.push_back(builder.CreateIntrinsic(instruction_of(address.is_narrow(), made_element), {},
                                            {part(otherwise), address.base, part(address.indices), part(signs),
                                             builder.getInt8(static_cast<uint8_t>(address.scale))}));
  }
  Value* result = concatenateVectors(builder, parts);
  if (is_pointer) result = builder.CreateIntToPtr(result, type);
  gather.replaceAllUsesWith(result);
  gather.eraseFromParent();
  return true;
}

}  // namespace

bool select_gather_instructions(Function& function) {
  const DataLayout& layout = function.getDataLayout();
  bool has_changed = false;
  for (Instruction& instruction : make_early_inc_range(instructions(function)))
    if (auto* call = dyn_cast<IntrinsicInst>(&instruction); call && call->getIntrinsicID() == Intrinsic::masked_gather)
      has_changed |= select_instructions(*call, layout);
  return has_changed;
}

}  // namespace kiln
