// Products of matrices by the hardware's instructions for them (`mma.sync`), outside of safe mode.
//
// The instructions multiply 16 by 8 and 8 by 8 halves or bfloats and add floats. So one instruction computes two
// products with the same right matrix; a single product has zeros for the other. Sums are floats whatever the body's
// are, and are rounded once.
//
// By PTX's tables a lane l holds row l / 4 of the left matrix and of the sums, in columns 2 (l % 4) and one more, and
// the same columns of the row that is 8 below. Of the right matrix it holds column l / 4, in rows
// 2 (l % 4) and one more. `movmatrix`, which transposes 8 by 8 elements, converts the former layout to the latter. If
// a body accesses single elements, they are distributed as on Apple's GPUs (MatrixMap::kApple), and shuffles before and
// after the product convert them.
//
// Rejected: floats by way of tf32, which has 10 bits: no mode of Metal's allows that. Products in Apple's layout
// without shuffles: it has a bit of the row where the instruction expects one of the column, which sums of four times
// as many products could compensate for.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include "compiler/ir/convergence_point.h"
#include "compiler/lowering/matrix_products.h"
#include "compiler/nvptx/simdgroup_masks.h"

namespace kiln {

/// Replaces those products of `body` that all 32 threads execute, and whose types the hardware supports.
void multiply_by_tensor_cores(llvm::Function& body, llvm::ArrayRef<ConvergencePoint> points, const Masks& masks,
                              MatrixMap map);

}  // namespace kiln
