#include "compiler/lowering/module_preparation.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalVariable.h>

#include "compiler/ir/sections.h"

namespace kiln {

using namespace llvm;

void set_layout(Module& module, const DataLayout& layout) {
  module.setDataLayout(layout);
  for (Function& function : module)
    for (const char* attribute : {"target-cpu", "target-features", "tune-cpu", "min-legal-vector-width"})
      function.removeFnAttr(attribute);
}

void define_dynamic_memory(Module& module, uint64_t bytes) {
  SmallVector<GlobalVariable*> arrays;
  for (GlobalVariable& variable : module.globals())
    if (variable.isDeclaration() && variable.getSection() == kThreadgroupSection) arrays.push_back(&variable);
  if (arrays.empty()) return;
  auto* type = ArrayType::get(Type::getInt8Ty(module.getContext()), bytes);
  auto* memory = new GlobalVariable(module, type, /*isConstant=*/false, GlobalValue::InternalLinkage,
                                    UndefValue::get(type), "__kiln_dynamic_memory");
  memory->setSection(kThreadgroupSection);
  memory->setAlignment(Align(128));
  for (GlobalVariable* array : arrays) {
    array->replaceAllUsesWith(memory);
    array->eraseFromParent();
  }
}

}  // namespace kiln
