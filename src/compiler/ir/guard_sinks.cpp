#include "compiler/ir/guard_sinks.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/ReplaceConstant.h>

#include "compiler/ir/guard_zeros.h"

namespace kiln {

using namespace llvm;

namespace {

constexpr const char* kSink = "__kiln_sink";

GlobalVariable& make_sink(Module& module, Type* type, Align alignment) {
  auto* global = new GlobalVariable(module, type, /*isConstant=*/false, GlobalValue::ExternalLinkage,
                                    /*Initializer=*/nullptr, kSink);
  global->setAlignment(alignment);
  return *global;
}

}  // namespace

void hide_sinks(Function& function) {
  auto is_sink = [](AllocaInst& variable) {
    return all_of(variable.users(), [&](const User* user) {
      const auto* choice = dyn_cast<SelectInst>(user);
      return isa<LifetimeIntrinsic>(user) ||
             (choice && choice->getFalseValue() == &variable && choice->getTrueValue() != &variable);
    });
  };
  // Collected first: a lifetime marker that goes may be the instruction after its variable.
  SmallVector<AllocaInst*> sinks;
  for (Instruction& instruction : function.getEntryBlock())
    if (auto* variable = dyn_cast<AllocaInst>(&instruction); variable && !variable->use_empty() && is_sink(*variable))
      sinks.push_back(variable);
  for (AllocaInst* variable : sinks) {
    for (User* user : make_early_inc_range(variable->users()))
      if (auto* lifetime = dyn_cast<LifetimeIntrinsic>(user)) lifetime->eraseFromParent();
    variable->replaceAllUsesWith(&make_sink(*function.getParent(), variable->getAllocatedType(), variable->getAlign()));
    variable->eraseFromParent();
  }
}

GlobalVariable& make_sink(Module& module, unsigned bytes) {
  return make_sink(module, ArrayType::get(Type::getInt8Ty(module.getContext()), bytes), Align(16));
}

void restore_sinks(Function& function) {
  for (GlobalVariable& global : make_early_inc_range(function.getParent()->globals())) {
    if (!global.getName().starts_with(kSink)) continue;
    SmallVector<Constant*> users{&global};
    convertUsersOfConstantsToInstructions(users);
    if (!global.use_empty()) {
      IRBuilder<> builder(&*function.getEntryBlock().getFirstInsertionPt());
      AllocaInst* variable = builder.CreateAlloca(global.getValueType());
      variable->setAlignment(global.getAlign().valueOrOne());
      global.replaceAllUsesWith(variable);
    }
    global.eraseFromParent();
  }
}

void share_sinks(Module& module) {
  for (GlobalVariable& global : make_early_inc_range(module.globals())) {
    if (!is_sink(&global)) continue;
    global.removeDeadConstantUsers();
    if (global.use_empty()) {
      global.eraseFromParent();
      continue;
    }
    global.setInitializer(Constant::getNullValue(global.getValueType()));
    global.setLinkage(GlobalValue::InternalLinkage);
  }
}

bool is_sink(const Value* pointer) {
  const auto* variable = dyn_cast<GlobalVariable>(pointer->stripPointerCasts());
  return variable && variable->getName().starts_with(kSink);
}

const Value* unguarded(const Value* pointer) {
  const auto* select = dyn_cast<SelectInst>(pointer);
  if (select && (is_zeros(select->getFalseValue()) || is_sink(select->getFalseValue()))) return select->getTrueValue();
  return pointer;
}

}  // namespace kiln
