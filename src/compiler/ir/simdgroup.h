// The size of a simdgroup, and the pseudo-intrinsics that give a thread's lane.
#pragma once

#include <llvm/IR/Module.h>

#include "compiler/ir/pseudo_intrinsics.h"

namespace kiln {

inline constexpr unsigned kLanes = 32;

// `i32 __kiln_lane()`: the thread's lane in its simdgroup. Every difference between threads comes from it and from
// their private memory.
inline constexpr const char* kLaneFunction = "__kiln_lane";

// The same lane in the code of collectives, which inactive lanes execute too.
inline constexpr const char* kCollectiveLaneFunction = "__kiln_place";

/// kLaneFunction, declared in the module.
inline llvm::Function& lane_function(llvm::Module& module) {
  auto* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(module.getContext()), false);
  llvm::Function& function = pseudo_intrinsic(module, kLaneFunction, type);
  set_no_side_effects(function);
  return function;
}

inline bool is_lane(const llvm::Value* value) {
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
  return instruction && (calls(*instruction, kLaneFunction) || calls(*instruction, kCollectiveLaneFunction));
}

}  // namespace kiln
