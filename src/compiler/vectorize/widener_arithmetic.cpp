#include "compiler/vectorize/widener_arithmetic.h"

#include <llvm/Analysis/VectorUtils.h>

#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/lowering/approximations.h"
#include "compiler/lowering/ldexp.h"
#include "compiler/vectorize/widener_scalarized.h"

namespace kiln::widening {

static bool is_defined_divisor(const Value* divisor) {
  const auto* constant = dyn_cast<ConstantInt>(divisor);
  return constant && !constant->isZero() && !constant->isMinusOne();
}

Value* Arithmetic::widen(Instruction& instruction, IRBuilder<>& builder) {
  auto operand = [&](unsigned i) { return lanes_.vector(instruction.getOperand(i), builder); };
  if (auto* cast_instruction = dyn_cast<CastInst>(&instruction))
    return builder.CreateCast(cast_instruction->getOpcode(), operand(0), vector_of(instruction.getType()));
  if (auto* comparison = dyn_cast<CmpInst>(&instruction)) {
    if (Value* lanes = checks_.lanes_below(*comparison, builder)) return lanes;
    return builder.CreateCmp(comparison->getPredicate(), operand(0), operand(1));
  }
  if (isa<SelectInst>(instruction)) {
    Value* condition = instruction.getOperand(0);
    if (!lanes_.is_divergent(condition))
      if (Value* masked = zero_unless(instruction, builder)) return masked;
    return builder.CreateSelect(lanes_.is_divergent(condition) ? operand(0) : lanes_.scalar(condition), operand(1),
                                operand(2));
  }
  if (auto* binary = dyn_cast<BinaryOperator>(&instruction)) {
    if (binary->isIntDivRem())
      if (Value* widened = widen_division(*binary, builder)) return widened;
    Value* second = operand(1);
    // The optimizer may have removed a check that kept a division from trapping, because a branch keeps threads from
    // it. Inactive lanes divide by 1.
    if (binary->isIntDivRem()) {
      second = without_zeros(binary->getOperand(1), builder);
      if (!is_all(lanes_.mask()) && !is_defined_divisor(binary->getOperand(1)))
        second = builder.CreateSelect(lanes_.mask(), second, ConstantInt::get(second->getType(), 1));
    }
    return builder.CreateBinOp(binary->getOpcode(), operand(0), second);
  }
  if (isa<UnaryOperator>(instruction)) return builder.CreateFNeg(operand(0));
  if (isa<FreezeInst>(instruction)) return builder.CreateFreeze(operand(0));
  if (auto* address = dyn_cast<GetElementPtrInst>(&instruction)) {
    Value* pointer = address->getPointerOperand();
    SmallVector<Value*> indices;
    for (Value* index : address->indices())
      indices.push_back(lanes_.is_divergent(index) ? lanes_.vector(index, builder) : lanes_.scalar(index));
    Value* base = lanes_.is_divergent(pointer) ? lanes_.vector(pointer, builder) : lanes_.scalar(pointer);
    Value* result = builder.CreateGEP(address->getSourceElementType(), base, indices);
    return result->getType()->isVectorTy() ? result : builder.CreateVectorSplat(kLanes, result);
  }
  if (auto* call = dyn_cast<IntrinsicInst>(&instruction)) return widen_intrinsic(*call, builder);
  if (is_rounded_rsqrt(instruction) && isa_.estimates_rsqrt_to_14_bits) return round_rsqrt(operand(0), isa_, builder);
  if (is_rsqrt(instruction) && isa_.estimate_rsqrt) return approximate_rsqrt(operand(0), isa_, builder);
  if (is_ldexp(instruction) && isa_.scale) return scale_by_instruction(operand(0), operand(1), isa_, builder);
  return nullptr;
}

// A divisor that is 0 in no lane. If one side of a select is constant, as in a check against dividing by 0, the
// optimizer divides by each side. It treats division by a vector with a single 0 as undefined, so neither side may
// contain a 0.
Value* Arithmetic::without_zeros(Value* divisor, IRBuilder<>& builder, unsigned depth) {
  auto* select = dyn_cast<SelectInst>(divisor);
  if (select && lanes_.is_divergent(select) && depth < 8) {
    Value* condition = select->getCondition();
    return builder.CreateSelect(
        lanes_.is_divergent(condition) ? lanes_.vector(condition, builder) : lanes_.scalar(condition),
        without_zeros(select->getTrueValue(), builder, depth + 1),
        without_zeros(select->getFalseValue(), builder, depth + 1));
  }
  Value* lanes = lanes_.vector(divisor, builder);
  if (is_defined_divisor(divisor)) return lanes;
  return builder.CreateBinaryIntrinsic(Intrinsic::umax, lanes, ConstantInt::get(lanes->getType(), 1));
}

// A select with a uniform condition between a value and 0, as a bitwise AND. Where no instruction selects vectors by a
// scalar, the select would be a branch, which is predicted badly if the condition comes from data.
Value* Arithmetic::zero_unless(Instruction& select, IRBuilder<>& builder) {
  auto* if_true = dyn_cast<Constant>(select.getOperand(1));
  auto* if_false = dyn_cast<Constant>(select.getOperand(2));
  bool keeps_first = if_false && if_false->isNullValue();
  if (keeps_first == (if_true && if_true->isNullValue())) return nullptr;
  Value* kept = select.getOperand(keeps_first ? 1 : 2);
  Type* type = select.getType();
  if (!lanes_.is_divergent(kept) || type->isPointerTy() || type->isIntegerTy(1)) return nullptr;
  Value* condition = lanes_.scalar(select.getOperand(0));
  if (!keeps_first) condition = builder.CreateNot(condition);
  Type* number = builder.getIntNTy(static_cast<unsigned>(type->getPrimitiveSizeInBits()));
  Value* mask = builder.CreateVectorSplat(kLanes, builder.CreateSExt(condition, number));
  Value* bits = builder.CreateBitCast(lanes_.vector(kept, builder), vector_of(number));
  return builder.CreateBitCast(builder.CreateAnd(bits, mask), vector_of(type));
}

void Arithmetic::widen_checked(WithOverflowInst& call, IRBuilder<>& builder) {
  check_pair(call);
  Value *left = lanes_.vector(call.getLHS(), builder), *right = lanes_.vector(call.getRHS(), builder);
  Value* both = builder.CreateIntrinsic(call.getIntrinsicID(), {left->getType()}, {left, right});
  for (User* user : call.users())
    lanes_.set_vector(user, builder.CreateExtractValue(both, cast<ExtractValueInst>(user)->getIndices()));
}

Value* Arithmetic::widen_intrinsic(IntrinsicInst& call, IRBuilder<>& builder) {
  Intrinsic::ID id = call.getIntrinsicID();
  if (id == Intrinsic::fptosi_sat || id == Intrinsic::fptoui_sat) return widen_saturating_conversion(call, builder);
  if (!isTriviallyVectorizable(id)) return nullptr;
  SmallVector<Value*> arguments;
  SmallVector<Type*> types;
  if (isVectorIntrinsicWithOverloadTypeAtArg(id, -1)) types.push_back(vector_of(call.getType()));
  for (unsigned i = 0; i < call.arg_size(); ++i) {
    Value* argument = call.getArgOperand(i);
    bool is_scalar_operand = isVectorIntrinsicWithScalarOpAtArg(id, i);
    if (is_scalar_operand && lanes_.is_divergent(argument)) return nullptr;
    arguments.push_back(is_scalar_operand ? lanes_.scalar(argument) : lanes_.vector(argument, builder));
    if (isVectorIntrinsicWithOverloadTypeAtArg(id, i)) types.push_back(arguments.back()->getType());
  }
  return builder.CreateIntrinsic(id, types, arguments);
}

}  // namespace kiln::widening
