// Loads of values of a launch and its records that do not change while it runs, whatever threads write.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <cstdint>

namespace kiln {

/// The field at an offset of `offset` bytes in `structure`.
inline llvm::LoadInst* load_invariant(llvm::IRBuilderBase& builder, llvm::Type* type, llvm::Value* structure,
                                      uint64_t offset) {
  llvm::LoadInst* load = builder.CreateLoad(type, builder.CreatePtrAdd(structure, builder.getInt64(offset)));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(builder.getContext(), {}));
  return load;
}

}  // namespace kiln
