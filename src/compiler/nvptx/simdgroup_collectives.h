// Simdgroup collectives by the hardware's instructions.
//
// They compute what CpuExchange defines (core/cpu_image.h), in its order. There an inactive lane counts as one that
// holds the identity, and computes along. Here it computes nothing; if lanes are missing, the others compute their
// part.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/Instructions.h>

#include "compiler/ir/convergence_point.h"
#include "compiler/lowering/matrix_products.h"
#include "compiler/nvptx/simdgroup_masks.h"

namespace kiln {

/// Replaces the collectives and barriers of `body`, and products of matrices whose elements `map` assigns to lanes.
void lower_convergence_points(llvm::Function& body, llvm::ArrayRef<ConvergencePoint> points, const Masks& masks,
                              MatrixMap map);

}  // namespace kiln
