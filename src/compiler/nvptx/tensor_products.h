// Products of matrices by the hardware's instructions for them (`mma.sync`), outside of safe mode.
//
// They multiply 16 by 8 and 8 by 8 halves or bfloats and add floats. So two products with the same right matrix are one
// instruction; one alone has zeros for the other. Sums are floats whatever the body's are, and are rounded once.
//
// By PTX's tables a lane l has of the left matrix and of the sums row l / 4 and the columns 2 (l % 4) and one more, and
// the same of the row that is 8 below; of the right matrix rows 2 (l % 4) and one more of column l / 4. The latter is
// what the former becomes by `movmatrix`, which transposes 8 by 8 elements. Where a body looks at single elements they
// are given out as Apple's GPUs do it (MatrixMap::kApple), and lanes exchange them before and behind.
//
// Rejected: floats by way of tf32, which has 10 bits: no mode of Metal's allows that. Products of Apple's map without
// exchanges: it has a bit of the row where the instruction wants one of the column, which sums of four times as many
// products could make up for.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include "compiler/ir/convergence_point.h"
#include "compiler/lowering/matrix_products.h"
#include "compiler/nvptx/simdgroup_masks.h"

namespace kiln {

/// Replaces those products of `body` to which all 32 threads come, and whose types the hardware has.
void multiply_by_tensor_cores(llvm::Function& body, llvm::ArrayRef<ConvergencePoint> sites, const Masks& masks,
                              MatrixMap map);

}  // namespace kiln
