// Multiples of 32 apart from the lane.
//
// The place of a thread in its row is a multiple of 32 and its lane, `m | lane`. What is computed from it stays of this
// form, or loses the lane:
//
//   n + (m | lane)     (n + m) | lane          where n is a multiple too
//   (m | lane) / n     m / n
//   (m | lane) % n     (m % n) | lane
//   (m | lane) & c     (m & c) | lane          where c has the five bits of a lane
//
// so that `place / 64` is seen to be the same in all lanes, and `place % 64` to grow by one from lane to lane.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// All arithmetic is unsigned. A lane is told by kLaneFunction (analysis/uniformity.h).
void split_affine_lanes(llvm::Function& function);

}  // namespace kiln
