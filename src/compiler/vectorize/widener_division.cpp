// Integer division. Processors have no instructions that divide vectors of integers, and LLVM divides lane by lane.
//
// By a uniform number of up to 32 bits: by multiplication with a reciprocal that is computed once, as compilers divide
// by constants (Granlund and Montgomery, Division by Invariant Integers using Multiplication, 1994, figure 4.1). By
// what differs between lanes: as floating-point numbers that hold each of the integers, whose quotient's integral part
// is exact. A quotient that is no integer is at least 1/divisor from the next one, which is relatively more than an
// error of rounding: 2^-32 against 2^-53 for double and 32 bits, 2^-16 against 2^-24 for float and 16 bits. By a
// uniform power of two: by a shift.
//
// Numbers of 64 bits stay with LLVM.
#include <llvm/ADT/APInt.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/PatternMatch.h>

#include "compiler/vectorize/widener_arithmetic.h"

namespace kiln::widening {

namespace {

constexpr unsigned kWord = 32;

bool is_signed(const BinaryOperator& division) {
  return division.getOpcode() == Instruction::SDiv || division.getOpcode() == Instruction::SRem;
}

bool is_remainder(const BinaryOperator& division) {
  return division.getOpcode() == Instruction::URem || division.getOpcode() == Instruction::SRem;
}

// The upper halves of products of words: of those at even places and of those at odd ones, as there are instructions
// for.
Value* multiply_high(Value* words, Value* factor, IRBuilder<>& builder) {
  auto* type = cast<FixedVectorType>(words->getType());
  auto* pairs = FixedVectorType::get(builder.getInt64Ty(), type->getNumElements() / 2);
  auto splat = [&](uint64_t number) { return ConstantInt::get(pairs, number); };
  Value* by = builder.CreateVectorSplat(pairs->getNumElements(), factor);
  Value* all = builder.CreateBitCast(words, pairs);
  Value* even = builder.CreateMul(builder.CreateAnd(all, splat(maskTrailingOnes<uint64_t>(kWord))), by);
  Value* odd = builder.CreateMul(builder.CreateLShr(all, splat(kWord)), by);
  Value* upper = builder.CreateOr(builder.CreateLShr(even, splat(kWord)),
                                  builder.CreateAnd(odd, splat(maskLeadingOnes<uint64_t>(kWord))));
  return builder.CreateBitCast(upper, type);
}

// Words divided by a uniform word, which is not 0.
Value* divide_by_uniform(Value* words, Value* divisor, IRBuilder<>& builder) {
  Type *word = builder.getInt32Ty(), *wide = builder.getInt64Ty();
  auto splat = [&](Value* one) { return builder.CreateVectorSplat(kLanes, one); };
  // The least power of two that is not below the divisor.
  Value* zeros = builder.CreateBinaryIntrinsic(Intrinsic::ctlz, builder.CreateSub(divisor, builder.getInt32(1)),
                                               builder.getFalse());
  Value* log = builder.CreateSub(builder.getInt32(kWord), zeros);
  Value* divisor64 = builder.CreateZExt(divisor, wide);
  Value* power = builder.CreateShl(builder.getInt64(1), builder.CreateZExt(log, wide));
  Value* quotient =
      builder.CreateUDiv(builder.CreateShl(builder.CreateSub(power, divisor64), uint64_t{kWord}), divisor64);
  Value* factor = builder.CreateZExt(builder.CreateTrunc(builder.CreateAdd(quotient, builder.getInt64(1)), word), wide);
  Value* first_shift = builder.CreateBinaryIntrinsic(Intrinsic::umin, log, builder.getInt32(1));
  Value* second_shift = builder.CreateSub(log, first_shift);
  Value* upper = multiply_high(words, factor, builder);
  Value* rest = builder.CreateLShr(builder.CreateSub(words, upper), splat(first_shift));
  return builder.CreateLShr(builder.CreateAdd(upper, rest), splat(second_shift));
}

// The divisor of a signed division before defined-arithmetic's guard, which takes 1 in place of 0, and in place of -1
// if the quotient would not fit. That makes it differ between lanes where nothing else does; the quotient of the
// smallest number, and the remainder, are the same without the second part.
Value* without_guard(const BinaryOperator& division) {
  using namespace PatternMatch;
  Value *guarded = division.getOperand(1), *divisor = nullptr, *is_bad = nullptr;
  const APInt smallest = APInt::getSignedMinValue(division.getType()->getIntegerBitWidth());
  if (!is_signed(division) || !match(guarded, m_Select(m_Value(is_bad), m_One(), m_Value(divisor)))) return guarded;
  ICmpInst::Predicate zero, least, minus_one;
  const auto is_guard = m_c_Or(m_ICmp(zero, m_Specific(divisor), m_Zero()),
                               m_c_And(m_ICmp(least, m_Specific(division.getOperand(0)), m_SpecificInt(smallest)),
                                       m_ICmp(minus_one, m_Specific(divisor), m_AllOnes())));
  if (!match(is_bad, is_guard)) return guarded;
  const bool are_equal = zero == ICmpInst::ICMP_EQ && least == ICmpInst::ICMP_EQ && minus_one == ICmpInst::ICMP_EQ;
  return are_equal ? divisor : guarded;
}

// As an unsigned number.
Value* absolute(Value* value, IRBuilder<>& builder) {
  return builder.CreateBinaryIntrinsic(Intrinsic::abs, value, builder.getFalse());
}

// Numbers from `first` on, one for each lane, divided by a constant: the first one's remainder and a lane's number are
// less than a few divisors together.
Value* divide_consecutive(Value* first, const APInt& divisor, bool is_remainder, IRBuilder<>& builder) {
  Type* word = builder.getInt32Ty();
  const uint64_t by = divisor.getZExtValue();
  Value* constant = builder.getInt32(static_cast<uint32_t>(by));
  Value* quotient = builder.CreateUDiv(first, constant);
  Value* rest = builder.CreateSub(first, builder.CreateMul(quotient, constant));
  Value* sum = builder.CreateAdd(builder.CreateVectorSplat(kLanes, rest), lane_numbers(word));
  Value* by_lanes = builder.CreateVectorSplat(kLanes, constant);
  const unsigned num_ends =
      static_cast<unsigned>((by - 1 + kLanes - 1) / by);  // the most that is added to the quotient
  if (num_ends <= 2) {
    if (is_remainder) {
      // What is less than the divisor wraps.
      for (unsigned i = 0; i < num_ends; ++i)
        sum = builder.CreateBinaryIntrinsic(Intrinsic::umin, sum, builder.CreateSub(sum, by_lanes));
      return sum;
    }
    Value* result = builder.CreateVectorSplat(kLanes, quotient);
    for (unsigned i = 1; i <= num_ends; ++i) {
      Value* end = builder.CreateVectorSplat(kLanes, builder.getInt32(static_cast<uint32_t>(i * by)));
      result = builder.CreateSub(result, builder.CreateSExt(builder.CreateICmpUGE(sum, end), result->getType()));
    }
    return result;
  }
  // The sum is at most 45, so that a reciprocal of 16 bits is exact.
  Value* factor = ConstantInt::get(sum->getType(), (uint64_t{1} << 16) / by + 1);
  Value* more = builder.CreateLShr(builder.CreateMul(sum, factor), 16);
  if (is_remainder) return builder.CreateSub(sum, builder.CreateMul(more, by_lanes));
  return builder.CreateAdd(builder.CreateVectorSplat(kLanes, quotient), more);
}

}  // namespace

// Null where LLVM divides.
Value* Arithmetic::widen_division(BinaryOperator& division, IRBuilder<>& builder) {
  const unsigned bits = division.getType()->getIntegerBitWidth();
  Value *dividend = division.getOperand(0), *divisor = without_guard(division);
  if (lanes_.is_divergent(divisor)) divisor = division.getOperand(1);
  if (const auto* constant = dyn_cast<ConstantInt>(divisor);
      constant && bits == kWord && !is_signed(division) && constant->getValue().ugt(2) &&
      !constant->getValue().isPowerOf2() && constant->getValue().ult(1u << 31))
    if (Value* first = checks_.first_of_consecutive(dividend, builder))
      return divide_consecutive(first, constant->getValue(), is_remainder(division), builder);
  // LLVM divides by constants as it is done here.
  if (bits > kWord || bits < 8 || isa<Constant>(divisor)) return nullptr;
  const bool has_sign = is_signed(division);
  const auto extension = has_sign ? Instruction::SExt : Instruction::ZExt;
  Value* lanes = lanes_.vector(dividend, builder);
  Value *quotient, *by;
  if (!lanes_.is_divergent(divisor)) {
    Type *word = builder.getInt32Ty(), *words = vector_of(word);
    // Where no lane is active the divisor may be 0.
    Value* one =
        builder.CreateBinaryIntrinsic(Intrinsic::umax, lanes_.scalar(divisor), ConstantInt::get(divisor->getType(), 1));
    by = builder.CreateVectorSplat(kLanes, one);
    Value* from = bits == kWord ? lanes : builder.CreateCast(extension, lanes, words);
    Value* to = bits == kWord ? one : builder.CreateCast(extension, one, word);
    if (!has_sign && isKnownToBeAPowerOfTwo(divisor, layout_, /*OrZero=*/true)) {
      // As distances that a loop halves or doubles, in sorting networks and Fourier transforms.
      Value* log = builder.CreateBinaryIntrinsic(Intrinsic::cttz, to, builder.getTrue());
      quotient = builder.CreateLShr(from, builder.CreateVectorSplat(kLanes, log));
    } else if (has_sign) {
      Value* magnitude = divide_by_uniform(absolute(from, builder), absolute(to, builder), builder);
      Value* sign = builder.CreateAShr(builder.CreateXor(from, builder.CreateVectorSplat(kLanes, to)),
                                       ConstantInt::get(words, kWord - 1));
      quotient = builder.CreateSub(builder.CreateXor(magnitude, sign), sign);
    } else {
      quotient = divide_by_uniform(from, to, builder);
    }
    if (bits != kWord) quotient = builder.CreateTrunc(quotient, lanes->getType());
  } else {
    by = without_zeros(divisor, builder);
    if (!is_all(lanes_.mask())) by = builder.CreateSelect(lanes_.mask(), by, ConstantInt::get(by->getType(), 1));
    Type* number = vector_of(bits > 16 ? builder.getDoubleTy() : builder.getFloatTy());
    auto real = [&](Value* value) {
      return has_sign ? builder.CreateSIToFP(value, number) : builder.CreateUIToFP(value, number);
    };
    Value* ratio = builder.CreateFDiv(real(lanes), real(by));
    quotient = has_sign ? builder.CreateFPToSI(ratio, lanes->getType()) : builder.CreateFPToUI(ratio, lanes->getType());
  }
  return is_remainder(division) ? builder.CreateSub(lanes, builder.CreateMul(quotient, by)) : quotient;
}

}  // namespace kiln::widening
