#include "compiler/nvptx/threadgroup_memory.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalVariable.h>

#include "compiler/ir/sections.h"
#include "compiler/nvptx/ptx_generator.h"

namespace kiln {

using namespace llvm;

void move_threadgroup_variables(Module& module) {
  for (GlobalVariable& variable : make_early_inc_range(module.globals())) {
    if (variable.getSection() != kThreadgroupSection || variable.getAddressSpace() == kSharedSpace) continue;
    auto* shared = new GlobalVariable(module, variable.getValueType(), /*isConstant=*/false,
                                      GlobalValue::InternalLinkage, PoisonValue::get(variable.getValueType()),
                                      "__kiln_shared", nullptr, GlobalValue::NotThreadLocal, kSharedSpace);
    shared->setAlignment(std::max(Align(16), variable.getAlign().valueOrOne()));
    shared->setSection(kThreadgroupSection);
    variable.replaceAllUsesWith(ConstantExpr::getAddrSpaceCast(shared, variable.getType()));
    variable.eraseFromParent();
  }
}

uint64_t lay_out_threadgroup_memory(Module& module) {
  uint64_t bytes = 0;
  GlobalVariable* block = nullptr;
  Type* byte = Type::getInt8Ty(module.getContext());
  for (GlobalVariable& variable : make_early_inc_range(module.globals())) {
    if (variable.getSection() != kThreadgroupSection) continue;
    if (!block) {
      block = new GlobalVariable(module, ArrayType::get(byte, 0), /*isConstant=*/false, GlobalValue::ExternalLinkage,
                                 /*Initializer=*/nullptr, "kiln_threadgroup_memory", nullptr,
                                 GlobalValue::NotThreadLocal, kSharedSpace);
      block->setAlignment(Align(16));
    }
    bytes = alignTo(bytes, variable.getAlign().valueOrOne());
    Constant* offset = ConstantInt::get(Type::getInt64Ty(module.getContext()), bytes);
    bytes += module.getDataLayout().getTypeAllocSize(variable.getValueType());
    variable.replaceAllUsesWith(ConstantExpr::getInBoundsGetElementPtr(byte, block, offset));
    variable.eraseFromParent();
  }
  // An atomic of fewer bytes accesses the whole word around them.
  return alignTo(bytes, 4);
}

// CUDA C++ Programming Guide, "Maximum amount of shared memory per thread block".
uint64_t threadgroup_memory_limit(const std::string& architecture) {
  if (architecture.starts_with("sm_90")) return 227 << 10;
  if (architecture == "sm_80" || architecture == "sm_87") return 163 << 10;
  return 99 << 10;
}

}  // namespace kiln
