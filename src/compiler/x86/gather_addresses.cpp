#include "compiler/x86/gather_addresses.h"

#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/PatternMatch.h>

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

constexpr unsigned kIndexBits = 32;
constexpr unsigned kMostConditions = 8;

// Whether lanes in which the mask holds have an index below 2^31.
bool is_small_where(Value* mask, Value* index, unsigned depth = 0) {
  Value *one, *other;
  if (depth < kMostConditions && match(mask, m_LogicalAnd(m_Value(one), m_Value(other))))
    return is_small_where(one, index, depth + 1) || is_small_where(other, index, depth + 1);
  const APInt *limit, *factor;
  ICmpInst::Predicate predicate;
  if (!match(mask, m_ICmp(predicate, m_Value(one), m_APInt(limit))) || predicate != ICmpInst::ICMP_ULT) return false;
  if (one == index) return limit->ule(APInt::getSignedMinValue(kIndexBits));
  // A product of 64 bits.
  APInt end = APInt(64, 1) << (kIndexBits - 1);
  if (match(one, m_Shl(m_Value(other), m_APInt(factor))) && factor->ult(16))
    end <<= *factor;
  else if (match(one, m_Mul(m_Value(other), m_APInt(factor))) && factor->ult(1 << 16))
    end *= *factor;
  else
    other = one;
  return limit->getBitWidth() == 64 && match(other, m_ZExt(m_Specific(index))) && limit->ule(end);
}

// The address as a base and one vector of indices; null if it is none.
Value* split_address(Value* address, Value* mask, const DataLayout& layout, IRBuilder<>& builder) {
  auto* gep = dyn_cast<GetElementPtrInst>(address);
  if (!gep || gep->getPointerOperandType()->isVectorTy()) return nullptr;
  Value* index = nullptr;
  uint64_t bytes = 0;
  for (auto level = gep_type_begin(gep), end = gep_type_end(gep); level != end; ++level) {
    Value* operand = level.getOperand();
    if (auto* constant = dyn_cast<Constant>(operand); constant && constant->isNullValue()) continue;
    if (index || !level.isSequential() || !operand->getType()->isVectorTy()) return nullptr;
    index = operand;
    bytes = level.getSequentialElementStride(layout);
  }
  // The scales of addresses.
  if (!index || !isPowerOf2_64(bytes) || bytes > 8) return nullptr;
  if (auto* extension = dyn_cast<CastInst>(index); extension && isa<SExtInst, ZExtInst>(extension)) {
    Value* narrow = extension->getOperand(0);
    const bool is_word = narrow->getType()->getScalarSizeInBits() == kIndexBits;
    const bool is_signed = isa<SExtInst>(extension) || (is_word && is_small_where(mask, narrow));
    index =
        is_signed ? builder.CreateSExt(narrow, extension->getType()) : builder.CreateZExt(narrow, extension->getType());
  }
  return builder.CreateGEP(builder.getIntNTy(static_cast<unsigned>(bytes) * 8), gep->getPointerOperand(), index);
}

}  // namespace

bool split_gather_addresses(Function& function) {
  const DataLayout& layout = function.getDataLayout();
  bool has_changed = false;
  for (Instruction& instruction : make_early_inc_range(instructions(function))) {
    auto* access = dyn_cast<IntrinsicInst>(&instruction);
    if (!access) continue;
    const Intrinsic::ID which = access->getIntrinsicID();
    if (which != Intrinsic::masked_gather && which != Intrinsic::masked_scatter) continue;
    const unsigned pointer = which == Intrinsic::masked_scatter;
    IRBuilder<> builder(access);
    Value* address = split_address(access->getArgOperand(pointer), access->getArgOperand(2 + pointer), layout, builder);
    if (!address) continue;
    access->setArgOperand(pointer, address);
    has_changed = true;
  }
  return has_changed;
}

}  // namespace kiln
