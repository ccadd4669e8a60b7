#include "compiler/ir/constant_sums.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/ConstantRange.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

namespace kiln {

using namespace llvm;
using namespace llvm::PatternMatch;

bool ConstantSum::never_wraps(bool is_signed, const DataLayout& layout) const {
  // A sum of numbers that have no bit in common keeps every bit of both, the sign too.
  if (auto* both = dyn_cast<PossiblyDisjointInst>(operation))
    return both->isDisjoint() || MaskedValueIsZero(base, *addend, layout);
  if (is_signed ? operation->hasNoSignedWrap() : operation->hasNoUnsignedWrap()) return true;
  const ConstantRange range = ConstantRange::fromKnownBits(computeKnownBits(base, layout), is_signed);
  const ConstantRange other(*addend);
  return (is_signed ? range.signedAddMayOverflow(other) : range.unsignedAddMayOverflow(other)) ==
         ConstantRange::OverflowResult::NeverOverflows;
}

std::optional<ConstantSum> constant_sum_of(Value& value) {
  auto* operation = dyn_cast<BinaryOperator>(&value);
  Value* base = nullptr;
  const APInt* addend = nullptr;
  if (!operation ||
      !match(operation, m_CombineOr(m_c_Or(m_APInt(addend), m_Value(base)), m_c_Add(m_APInt(addend), m_Value(base)))))
    return std::nullopt;
  return ConstantSum{operation, base, addend};
}

}  // namespace kiln
