#include "compiler/lowering/shape_constants.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

namespace kiln {
namespace {

using namespace llvm;

// The value at `offset` bytes; null if the access is not one whole element.
Constant* value_at(const KernelParameter& parameter, int64_t offset, Type* type) {
  if (!type->isIntegerTy(8 * parameter.element_bytes) || offset < 0 || offset % parameter.element_bytes != 0 ||
      offset >= parameter.guaranteed_bytes())
    return nullptr;
  auto index = static_cast<size_t>(offset / parameter.element_bytes);
  return ConstantInt::getSigned(type, index < parameter.values.size() ? parameter.values[index] : 0);
}

}  // namespace

void replace_known_shapes(Function& body, const KernelUnit& unit) {
  DenseMap<const Value*, const KernelParameter*> known;
  for (size_t i = 0; i < unit.parameters.size(); ++i)
    if (!unit.parameters[i].values.empty()) known[body.getArg(static_cast<unsigned>(3 * i))] = &unit.parameters[i];
  if (known.empty()) return;
  const DataLayout& layout = body.getParent()->getDataLayout();
  for (Instruction& instruction : make_early_inc_range(instructions(body))) {
    auto* load = dyn_cast<LoadInst>(&instruction);
    if (!load || !load->isSimple()) continue;
    APInt offset(64, 0);
    const Value* base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, true);
    auto parameter = known.find(base);
    if (parameter == known.end()) continue;
    Constant* value = value_at(*parameter->second, offset.getSExtValue(), load->getType());
    if (!value) continue;
    load->replaceAllUsesWith(value);
    load->eraseFromParent();
  }
}

}  // namespace kiln
