#include "compiler/lowering/threadgroup_pointer_tables.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ReplaceConstant.h>

#include "compiler/ir/sections.h"

namespace kiln {
namespace {

using namespace llvm;

bool mentions_threadgroup_memory(const Constant& constant) {
  if (const auto* variable = dyn_cast<GlobalVariable>(&constant)) return variable->getSection() == kThreadgroupSection;
  return any_of(constant.operands(), [](const Use& operand) {
    return isa<Constant>(operand) && mentions_threadgroup_memory(*cast<Constant>(operand));
  });
}

// Stores member by member, as if the body had assigned them.
void store(Constant& value, Value* address, IRBuilder<>& builder) {
  Type* type = value.getType();
  if (isa<UndefValue>(value)) return;
  if (!type->isAggregateType()) {
    builder.CreateStore(&value, address);
    return;
  }
  bool is_array = type->isArrayTy();
  uint64_t count = is_array ? type->getArrayNumElements() : type->getStructNumElements();
  for (unsigned i = 0; i < count; ++i)
    store(*value.getAggregateElement(i), builder.CreateConstInBoundsGEP2_32(type, address, 0, i), builder);
}

}  // namespace

void unfold_threadgroup_pointer_tables(Function& body) {
  for (GlobalVariable& table : make_early_inc_range(body.getParent()->globals())) {
    if (!table.isConstant() || !table.hasInitializer() || !mentions_threadgroup_memory(*table.getInitializer()))
      continue;
    SmallVector<Constant*> users{&table};
    convertUsersOfConstantsToInstructions(users);
    bool is_used_by_body_only = all_of(table.users(), [&](User* user) {
      auto* instruction = dyn_cast<Instruction>(user);
      return instruction && instruction->getFunction() == &body;
    });
    if (!is_used_by_body_only) continue;
    IRBuilder<> builder(&*body.getEntryBlock().getFirstInsertionPt());
    AllocaInst* variable = builder.CreateAlloca(table.getValueType());
    variable->setAlignment(table.getAlign().valueOrOne());
    store(*table.getInitializer(), variable, builder);
    table.replaceAllUsesWith(variable);
    table.eraseFromParent();
  }
}

}  // namespace kiln
