#include "compiler/vectorize/guard_extension.h"

#include <llvm/ADT/MapVector.h>
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

constexpr uint64_t kMostBytes = 1 << 16;

bool is_loaded_by_lanes(Value* value, const Divergence& divergence, unsigned depth = 0) {
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || isa<CallBase, PHINode>(instruction) || !divergence.is_divergent(instruction)) return false;
  if (isa<LoadInst>(instruction) || depth == kMostOperations) return true;
  return any_of(instruction->operands(),
                [&](Value* operand) { return is_loaded_by_lanes(operand, divergence, depth + 1); });
}

// The bytes of the elements of which `index`, in more bits, are added to the address; 0: it is no such index.
uint64_t bytes_by_index(Value* address, Value* index, const DataLayout& layout) {
  while (auto* gep = dyn_cast<GEPOperator>(address)) {
    auto level = gep_type_begin(gep);
    for (Use& use : gep->indices()) {
      auto* extension = dyn_cast<CastInst>(use);
      if (extension && isa<ZExtInst, SExtInst>(extension) && extension->getOperand(0) == index && level.isSequential())
        return level.getSequentialElementStride(layout);
      ++level;
    }
    address = gep->getPointerOperand();
  }
  return 0;
}

}  // namespace

bool extend_guards(Function& function, const Divergence& divergence) {
  const DataLayout& layout = function.getDataLayout();
  SmallMapVector<ICmpInst*, uint64_t, 16> narrow;  // and the bytes of an element
  for (Instruction& instruction : instructions(function)) {
    auto* select = dyn_cast<SelectInst>(&instruction);
    if (!select || !(is_zeros(select->getFalseValue()) || is_sink(select->getFalseValue()))) continue;
    auto* comparison = dyn_cast<ICmpInst>(select->getCondition());
    if (!comparison || !comparison->isUnsigned()) continue;
    for (Value* operand : comparison->operands()) {
      if (!operand->getType()->isIntegerTy() || operand->getType()->getIntegerBitWidth() >= 64) continue;
      const uint64_t bytes = bytes_by_index(select->getTrueValue(), operand, layout);
      if (bytes != 0 && bytes <= kMostBytes && !is_loaded_by_lanes(operand, divergence))
        narrow.insert({comparison, bytes});
    }
  }
  for (auto [comparison, bytes] : narrow) {
    IRBuilder<> builder(comparison);
    // Of 64 bits, so that a product does not wrap.
    for (Use& operand : comparison->operands()) {
      Value* wide = builder.CreateZExt(operand, builder.getInt64Ty());
      operand.set(bytes == 1 ? wide : builder.CreateMul(wide, builder.getInt64(bytes)));
    }
  }
  return !narrow.empty();
}

}  // namespace kiln
