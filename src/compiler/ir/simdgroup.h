// The size of a simdgroup, and the pseudo-intrinsics that give a thread's lane.
#pragma once

#include <llvm/IR/Module.h>

#include "compiler/ir/pseudo_intrinsics.h"

namespace kiln {

inline constexpr unsigned kLanes = 32;

/// kLaneFunction, declared in the module.
inline llvm::Function& lane_function(llvm::Module& module) {
  auto* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(module.getContext()), false);
  return pseudo_intrinsic(module, kLaneFunction, type);
}

inline bool is_lane(const llvm::Value* value) {
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
  return instruction && (calls(*instruction, kLaneFunction) || calls(*instruction, kCollectiveLaneFunction));
}

}  // namespace kiln
