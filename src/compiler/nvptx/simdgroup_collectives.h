// What threads of a simdgroup exchange, by the hardware's instructions.
//
// What is computed is CpuExchange's (core/cpu_image.h), in its order. A lane that takes no part counts there as one
// that holds the identity and computes along. Here it computes nothing; where some are missing, the others do it for
// them.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/Instructions.h>

#include "compiler/ir/convergence_point.h"
#include "compiler/lowering/matrix_products.h"
#include "compiler/nvptx/simdgroup_masks.h"

namespace kiln {

/// Replaces exchanges, barriers, and products of matrices whose elements are given out so, of `body`.
void lower_waits(llvm::Function& body, llvm::ArrayRef<ConvergencePoint> sites, const Masks& masks, MatrixMap map);

}  // namespace kiln
