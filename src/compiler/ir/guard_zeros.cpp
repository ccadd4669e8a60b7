#include "compiler/ir/guard_zeros.h"

#include <llvm/IR/Constants.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>
#include <string>

namespace kiln {

using namespace llvm;

bool is_zeros(const Value* pointer) {
  const auto* variable = dyn_cast<GlobalVariable>(pointer->stripPointerCasts());
  return variable && variable->getName().starts_with(kZeros);
}

GlobalVariable* zeros_of(Module& module, uint64_t bytes, unsigned address_space) {
  auto* type = ArrayType::get(Type::getInt8Ty(module.getContext()), PowerOf2Ceil(std::max<uint64_t>(64, bytes)));
  std::string name = (kZeros + Twine(type->getNumElements())).str();
  if (auto* existing = module.getGlobalVariable(name, true)) return existing;
  auto* variable = new GlobalVariable(module, type, /*isConstant=*/true, GlobalValue::InternalLinkage,
                                      ConstantAggregateZero::get(type), name, /*InsertBefore=*/nullptr,
                                      GlobalValue::NotThreadLocal, address_space);
  variable->setAlignment(Align(64));
  return variable;
}

}  // namespace kiln
