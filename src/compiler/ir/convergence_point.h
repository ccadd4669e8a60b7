// Convergence points: the calls at which threads of a simdgroup or threadgroup wait for one another.
//
// The front end calls kThreadgroupBarrierFunction, kCollectiveFunction and kWarpCollectiveFunction. They get numbers,
// and become calls of kConvergenceFunction, in lowering/convergence_points.h.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/pseudo_intrinsics.h"
#include "core/cpu_image.h"

namespace kiln {

struct ConvergencePoint {
  bool is_barrier = false;
  bool is_product = false;  // a product of matrices
  CpuExchange exchange = CpuExchange::kNone;
  uint32_t width = 0;
  uint32_t line = 0;      // of the generated text
  uint32_t function = 0;  // CpuSite::function
  uint64_t identity = 0;
  llvm::Function* combine = nullptr;
  std::vector<uint32_t> places;  // positions of the loops around the call, outermost first, then of the call
};

/// Whether the front end calls a barrier here, before convergence points are numbered.
inline bool is_threadgroup_barrier(const llvm::Instruction& instruction) {
  return calls(instruction, kThreadgroupBarrierFunction);
}

/// The same for a collective: Metal's, or a `_sync` function of CUDA's, which names the lanes that it waits for
/// (device/cuda/warp.h). That mask becomes the upper half of the convergence call's operand, or with LoopEnds::kKept
/// the operand of `void __kiln_mask(i32 mask)` before the call (lowering/warp_masks.h).
inline bool is_collective(const llvm::Instruction& instruction) {
  return calls(instruction, kCollectiveFunction) || calls(instruction, kWarpCollectiveFunction);
}

/// The number of the convergence point, if the instruction is a call of kConvergenceFunction.
inline std::optional<unsigned> convergence_point_at(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  if (!call || !call->getCalledFunction() || !call->getCalledFunction()->getName().starts_with(kConvergenceFunction))
    return std::nullopt;
  return static_cast<unsigned>(llvm::cast<llvm::ConstantInt>(call->getArgOperand(0))->getZExtValue());
}

/// Whether the threads of a simdgroup execute the instruction together.
inline bool is_convergent(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  return call && call->isConvergent();
}

}  // namespace kiln
