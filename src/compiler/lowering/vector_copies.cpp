#include "compiler/lowering/vector_copies.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <cstdint>

#include "compiler/ir/sections.h"

namespace kiln {

using namespace llvm;

namespace {

Type* type_of(uint64_t bytes, IRBuilderBase& builder) {
  switch (bytes) {
    case 2: return builder.getInt16Ty();
    case 4: return builder.getInt32Ty();
    case 8: return FixedVectorType::get(builder.getInt32Ty(), 2);
    case 16: return FixedVectorType::get(builder.getInt32Ty(), 4);
    default: return nullptr;
  }
}

bool is_in_threadgroup_memory(const Value& address) {
  const auto* variable = dyn_cast<GlobalVariable>(getUnderlyingObject(&address));
  return variable && variable->getSection() == kThreadgroupSection;
}

}  // namespace

bool load_and_store_copies(Function& body) {
  bool has_changed = false;
  for (Instruction& instruction : make_early_inc_range(instructions(body))) {
    auto* copy = dyn_cast<MemTransferInst>(&instruction);
    auto* length = copy ? dyn_cast<ConstantInt>(copy->getLength()) : nullptr;
    if (!length || copy->isVolatile() || !is_in_threadgroup_memory(*copy->getDest())) continue;
    IRBuilder<> builder(copy);
    Type* type = type_of(length->getZExtValue(), builder);
    if (!type) continue;
    LoadInst* value = builder.CreateAlignedLoad(type, copy->getSource(), copy->getSourceAlign().valueOrOne());
    StoreInst* store = builder.CreateAlignedStore(value, copy->getDest(), copy->getDestAlign().valueOrOne());
    value->setAAMetadata(copy->getAAMetadata());
    store->setAAMetadata(copy->getAAMetadata());
    copy->eraseFromParent();
    has_changed = true;
  }
  return has_changed;
}

}  // namespace kiln
