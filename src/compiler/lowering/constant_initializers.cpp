#include "compiler/lowering/constant_initializers.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Utils/Evaluator.h>

#include <vector>

#include "compiler/ir/pass_runner.h"

namespace kiln {
namespace {

using namespace llvm;

// The list of functions that run before the program.
constexpr const char* kConstructors = "llvm.global_ctors";

std::vector<Function*> constructors_of(const GlobalVariable& list) {
  std::vector<Function*> functions;
  const auto* entries = dyn_cast<ConstantArray>(list.getInitializer());
  if (!entries) return functions;
  for (const Use& entry : entries->operands())
    if (auto* function = dyn_cast<Function>(cast<Constant>(entry)->getAggregateElement(1)))
      functions.push_back(function);
  return functions;
}

// Whether no instruction stores to the variable or to a part of it. Other uses of its address are not followed: only
// `const` allows them.
bool is_only_read(const Value& address) {
  for (const User* user : address.users()) {
    if (const auto* store = dyn_cast<StoreInst>(user); store && store->getPointerOperand() == &address) return false;
    if (isa<GEPOperator>(user) && !is_only_read(*user)) return false;
  }
  return true;
}

}  // namespace

void evaluate_constant_initializers(Module& module) {
  GlobalVariable* list = module.getGlobalVariable(kConstructors);
  if (!list) return;
  std::vector<Function*> functions = constructors_of(*list);
  list->eraseFromParent();

  TargetLibraryInfoImpl library_impl((Triple(module.getTargetTriple())));
  library_impl.disableAllFunctions();
  TargetLibraryInfo library(library_impl);
  std::vector<GlobalVariable*> computed;
  for (Function* function : functions) {
    // The evaluator follows stores and loads of whole values only.
    PassRunner(nullptr).run(
        "sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,gvn,"
        "instcombine<no-verify-fixpoint>,adce",
        *function);
    Evaluator evaluator(module.getDataLayout(), &library);
    Constant* result = nullptr;
    if (evaluator.EvaluateFunction(function, result, SmallVector<Constant*>()))
      for (auto [variable, value] : evaluator.getMutatedInitializers()) {
        variable->setInitializer(value);
        computed.push_back(variable);
      }
    function->removeDeadConstantUsers();  // the list's
    if (function->use_empty()) function->eraseFromParent();
  }
  // C++ gives `const` variables internal linkage.
  for (GlobalVariable* variable : computed)
    if (variable->hasLocalLinkage() && is_only_read(*variable)) variable->setConstant(true);
}

}  // namespace kiln
