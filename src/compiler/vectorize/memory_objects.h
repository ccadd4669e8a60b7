// Which arrays and variables a pointer may point into, and whether two pointers may point into one.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Instructions.h>

#include "compiler/ir/guard_sinks.h"

namespace kiln {

/// The arrays that a pointer may point into: arguments, whose pointers are loaded once, and variables.
inline llvm::SmallVector<const llvm::Value*, 2> objects_of(const llvm::Value* pointer) {
  llvm::SmallVector<const llvm::Value*, 2> objects;
  llvm::getUnderlyingObjects(pointer, objects, /*LI=*/nullptr, /*MaxLookup=*/0);
  llvm::erase_if(objects, [](const llvm::Value* object) { return is_sink(object); });
  return objects;
}

inline bool is_identified(const llvm::Value* object) {
  const auto* load = llvm::dyn_cast<llvm::LoadInst>(object);
  return llvm::isa<llvm::GlobalVariable, llvm::AllocaInst>(object) ||
         (load && load->hasMetadata(llvm::LLVMContext::MD_invariant_load));
}

inline bool may_alias(const llvm::Value* first, const llvm::Value* second) {
  const auto of_first = objects_of(first), of_second = objects_of(second);
  return llvm::any_of(of_first, [&](const llvm::Value* one) {
    return llvm::any_of(of_second, [&](const llvm::Value* other) {
      return one == other || !is_identified(one) || !is_identified(other);
    });
  });
}

}  // namespace kiln
