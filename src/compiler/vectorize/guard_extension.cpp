#include "compiler/vectorize/guard_extension.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>

#include "compiler/analysis/divergence.h"
#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/guard_zeros.h"

namespace kiln {
namespace {

using namespace llvm;

// A longer expression counts as loaded: it is no lane's number plus a constant.
constexpr unsigned kMostOperations = 8;

bool is_loaded_by_lanes(Value* value, const Divergence& divergence, unsigned depth = 0) {
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || isa<CallBase, PHINode>(instruction) || !divergence.is_divergent(instruction)) return false;
  if (isa<LoadInst>(instruction) || depth == kMostOperations) return true;
  return any_of(instruction->operands(),
                [&](Value* operand) { return is_loaded_by_lanes(operand, divergence, depth + 1); });
}

// Whether `offset`, in more bits, is added to the address as a number of bytes.
bool is_byte_offset_of(Value* address, Value* offset, const DataLayout& layout) {
  while (auto* gep = dyn_cast<GEPOperator>(address)) {
    auto level = gep_type_begin(gep);
    for (Use& index : gep->indices()) {
      auto* extension = dyn_cast<CastInst>(index);
      if (extension && isa<ZExtInst, SExtInst>(extension) && extension->getOperand(0) == offset &&
          level.isSequential() && level.getSequentialElementStride(layout) == 1)
        return true;
      ++level;
    }
    address = gep->getPointerOperand();
  }
  return false;
}

}  // namespace

bool extend_guards(Function& function, const Divergence& divergence) {
  const DataLayout& layout = function.getDataLayout();
  SmallSetVector<ICmpInst*, 16> narrow;
  for (Instruction& instruction : instructions(function)) {
    auto* select = dyn_cast<SelectInst>(&instruction);
    if (!select || !(is_zeros(select->getFalseValue()) || is_sink(select->getFalseValue()))) continue;
    auto* comparison = dyn_cast<ICmpInst>(select->getCondition());
    if (!comparison || !comparison->isUnsigned()) continue;
    for (Value* operand : comparison->operands()) {
      if (!operand->getType()->isIntegerTy() || operand->getType()->getIntegerBitWidth() >= 64) continue;
      if (is_byte_offset_of(select->getTrueValue(), operand, layout) && !is_loaded_by_lanes(operand, divergence))
        narrow.insert(comparison);
    }
  }
  for (ICmpInst* comparison : narrow) {
    IRBuilder<> builder(comparison);
    for (Use& operand : comparison->operands()) operand.set(builder.CreateZExt(operand, builder.getInt64Ty()));
  }
  return !narrow.empty();
}

}  // namespace kiln
