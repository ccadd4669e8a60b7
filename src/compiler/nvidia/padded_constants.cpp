#include "compiler/nvidia/padded_constants.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/DerivedTypes.h>

#include <vector>

#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;

bool has_padded_vectors(Type* type, const DataLayout& layout) {
  if (auto* array = dyn_cast<ArrayType>(type)) return has_padded_vectors(array->getElementType(), layout);
  if (auto* structure = dyn_cast<StructType>(type))
    return any_of(structure->elements(), [&](Type* element) { return has_padded_vectors(element, layout); });
  return isa<FixedVectorType>(type) && layout.getTypeAllocSize(type) != layout.getTypeStoreSize(type);
}

}  // namespace

void spell_out_padding(Module& module) {
  const DataLayout& layout = module.getDataLayout();
  for (GlobalVariable& variable : make_early_inc_range(module.globals())) {
    if (!variable.hasInitializer() || isa<UndefValue>(variable.getInitializer()) ||
        variable.getInitializer()->isNullValue() || !has_padded_vectors(variable.getValueType(), layout))
      continue;
    std::vector<uint8_t> bytes(layout.getTypeAllocSize(variable.getValueType()));
    for (size_t i = 0; i < bytes.size(); ++i) {
      Constant* byte = ConstantFoldLoadFromConst(variable.getInitializer(), Type::getInt8Ty(module.getContext()),
                                                 APInt(64, i), layout);
      if (!byte) throw InternalError("a table of constants holds what has no bytes");
      // What is padding is nothing in particular.
      if (auto* known = dyn_cast<ConstantInt>(byte)) bytes[i] = static_cast<uint8_t>(known->getZExtValue());
    }
    Constant* spelled = ConstantDataArray::get(module.getContext(), bytes);
    auto* table = new GlobalVariable(module, spelled->getType(), variable.isConstant(), variable.getLinkage(), spelled,
                                     "", &variable, variable.getThreadLocalMode(), variable.getAddressSpace());
    table->setAlignment(layout.getValueOrABITypeAlignment(variable.getAlign(), variable.getValueType()));
    table->takeName(&variable);
    variable.replaceAllUsesWith(table);
    variable.eraseFromParent();
  }
}

}  // namespace kiln
