#include "compiler/lowering/combine_functions.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/KnownBits.h>

#include <algorithm>
#include <bit>

#include "compiler/ir/pass_runner.h"
#include "compiler/lowering/small_floats.h"

namespace kiln {

using namespace llvm;

void simplify_combining(Function& combine) {
  remove_bfloat(combine);
  PassRunner(nullptr).run("sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,simplifycfg", combine);
}

namespace {

// Whether `other` is `one` with the arguments swapped.
bool is_swapped(const Value* one, const Value* other, unsigned depth = 0) {
  if (isa<Argument>(one) && isa<Argument>(other)) return one != other;
  if (isa<Constant>(one)) return one == other;
  const auto *first = dyn_cast<Instruction>(one), *second = dyn_cast<Instruction>(other);
  if (!first || !second || depth > 8 || first->mayReadOrWriteMemory() || !first->isSameOperationAs(second))
    return false;
  auto pair = [&](unsigned i, unsigned j) {
    return is_swapped(first->getOperand(i), second->getOperand(j), depth + 1);
  };
  // A commutative operation may have more operands, as `fma`.
  bool is_pair_swapped = first->isCommutative() && pair(0, 1) && pair(1, 0);
  for (unsigned i = is_pair_swapped ? 2 : 0; i < first->getNumOperands(); ++i)
    if (!pair(i, i)) return false;
  return true;
}

}  // namespace

bool is_commutative(const Function& combine) {
  const auto* end = combine.size() == 1 ? dyn_cast<ReturnInst>(combine.front().getTerminator()) : nullptr;
  return end && is_swapped(end->getReturnValue(), end->getReturnValue());
}

Type* combining_type(Function& combine) {
  const DataLayout& layout = combine.getDataLayout();
  unsigned bits = 8;
  for (const BasicBlock& block : combine)
    if (const auto* end = dyn_cast<ReturnInst>(block.getTerminator()))
      bits = std::max(bits, computeKnownBits(end->getReturnValue(), layout).countMaxActiveBits());
  return IntegerType::get(combine.getContext(), std::bit_ceil(bits));
}

Value* narrow(Value* value) {
  auto* extension = dyn_cast<ZExtInst>(value);
  return extension && extension->getSrcTy()->getIntegerBitWidth() >= 8 ? extension->getOperand(0) : value;
}

}  // namespace kiln
