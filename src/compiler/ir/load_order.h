// A compiler-only barrier, which keeps loads in their order.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>

namespace kiln {

/// No load moves across the insertion point. The barrier becomes no instruction.
inline void fence_loads(llvm::IRBuilderBase& builder) {
  auto* type = llvm::FunctionType::get(builder.getVoidTy(), false);
  builder.CreateCall(type, llvm::InlineAsm::get(type, "", "~{memory}", /*hasSideEffects=*/true))->setDoesNotThrow();
}

}  // namespace kiln
