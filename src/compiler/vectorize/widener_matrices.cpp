// Products of matrices of 8 by 8, of which each lane has two elements (lowering/matrix_products.h).
//
// Lane l has elements of row (l4 l2 l1), by the bits of l, and of the columns (l3 l0 ·). So a register of 16 lanes has
// four whole rows' even or odd columns: a step's factors from `a` are a permutation of one register for each half of
// the rows, its factors from `b` one for the even and one for the odd columns, and each is used in all products of the
// same matrix, which LLVM sees. Other arrangements of elements in registers have more permutations, and want some for
// what threads do with their elements by themselves.
#include "compiler/lowering/matrix_products.h"
#include "compiler/vectorize/widener.h"

namespace kiln::widening {

Value* Widener::multiply(CallInst& call, IRBuilder<>& builder) {
  // Lanes that are not here count as ones with zeros.
  auto lanes = [&](unsigned i) {
    Value* all = vector(call.getArgOperand(i), builder);
    return builder.CreateSelect(mask_, all, Constant::getNullValue(all->getType()));
  };
  auto permuted = [&](Value* all, auto source_of) {
    SmallVector<int> sources;
    for (unsigned lane = 0; lane < kLanes; ++lane) sources.push_back(static_cast<int>(source_of(lane)));
    return builder.CreateShuffleVector(all, sources);
  };
  Value *a[2] = {lanes(0), lanes(1)}, *b = lanes(2), *sum = vector(call.getArgOperand(3), builder);
  for (unsigned k = 0; k < kMatrixSize; ++k) {
    Value* factor = permuted(a[k % 2], [&](unsigned lane) { return lane_in_row(lane, k); });
    Value* other = permuted(b, [&](unsigned lane) { return lane_in_column(lane, k); });
    sum = builder.CreateIntrinsic(Intrinsic::fma, {sum->getType()}, {factor, other, sum});
  }
  return sum;
}

}  // namespace kiln::widening
