#include "compiler/vectorize/loop_strides.h"

#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Instructions.h>

namespace kiln {

using namespace llvm;

static std::optional<int64_t> constant_step(const SCEV* value, const Loop& loop, ScalarEvolution& evolution) {
  const auto* walk = dyn_cast<SCEVAddRecExpr>(value);
  const auto* step =
      walk && walk->getLoop() == &loop ? dyn_cast<SCEVConstant>(walk->getStepRecurrence(evolution)) : nullptr;
  if (!step || step->getAPInt().getSignificantBits() > 31) return std::nullopt;
  return step->getAPInt().getSExtValue();
}

std::optional<LoopStride> loop_stride_of(Value* address, const Loop& loop, ScalarEvolution& evolution,
                                         const DataLayout& layout) {
  if (std::optional<int64_t> step = constant_step(evolution.getSCEV(address), loop, evolution))
    return LoopStride{*step, false};
  const auto* element = dyn_cast<GetElementPtrInst>(address);
  const auto* index = element && element->getNumIndices() == 1 ? dyn_cast<CastInst>(element->getOperand(1)) : nullptr;
  if (!index || !isa<ZExtInst, SExtInst>(index) ||
      !evolution.isLoopInvariant(evolution.getSCEV(element->getOperand(0)), &loop))
    return std::nullopt;
  std::optional<int64_t> step = constant_step(evolution.getSCEV(index->getOperand(0)), loop, evolution);
  if (!step) return std::nullopt;
  const auto size = static_cast<int64_t>(layout.getTypeAllocSize(element->getSourceElementType()).getFixedValue());
  return LoopStride{*step * size, true};
}

}  // namespace kiln
