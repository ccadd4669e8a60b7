// Products of 8 x 8 matrices, of which each lane has two elements (lowering/matrix_products.h).
//
// Lane l has elements of row (l4 l2 l1), by the bits of l, and of columns (l3 l0 ·). So a register of 16 lanes holds
// the even or the odd columns of four whole rows. A step's factors from `a` are one permutation of a register for each
// half of the rows. Its factors from `b` are one for the even and one for the odd columns. All products of the same
// matrix use these permutations, and LLVM shares them. Other layouts need more permutations, and some for what threads
// do with their own elements.
#include "compiler/lowering/matrix_products.h"
#include "compiler/vectorize/widener_collectives.h"

namespace kiln::widening {

Value* Collectives::multiply(CallInst& call, IRBuilder<>& builder) {
  // Inactive lanes count as zeros.
  auto lanes = [&](unsigned i) {
    Value* all = lanes_.vector(call.getArgOperand(i), builder);
    return builder.CreateSelect(lanes_.mask(), all, Constant::getNullValue(all->getType()));
  };
  auto permuted = [&](Value* all, auto source_of) {
    SmallVector<int> sources;
    for (unsigned lane = 0; lane < kLanes; ++lane) sources.push_back(static_cast<int>(source_of(lane)));
    return builder.CreateShuffleVector(all, sources);
  };
  Value *a[2] = {lanes(0), lanes(1)}, *b = lanes(2), *sum = lanes_.vector(call.getArgOperand(3), builder);
  for (unsigned k = 0; k < kMatrixSize; ++k) {
    Value* factor = permuted(a[k % 2], [&](unsigned lane) { return lane_in_row(lane, k); });
    Value* other = permuted(b, [&](unsigned lane) { return lane_in_column(lane, k); });
    sum = builder.CreateIntrinsic(Intrinsic::fma, {sum->getType()}, {factor, other, sum});
  }
  return sum;
}

}  // namespace kiln::widening
