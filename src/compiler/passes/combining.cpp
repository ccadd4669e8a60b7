#include "compiler/passes/combining.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/KnownBits.h>

#include <algorithm>
#include <bit>

#include "compiler/passes/pass_runner.h"
#include "compiler/passes/small_floats.h"

namespace kiln {

using namespace llvm;

void simplify_combining(Function& combine) {
  remove_bfloat(combine);
  PassRunner(nullptr).run("sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,simplifycfg", combine);
}

Type* combined_type(Function& combine) {
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
