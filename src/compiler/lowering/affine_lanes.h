// Splits affine values into a base, a multiple of 32, and the lane.
//
// The position of a thread along x is a multiple of 32 plus its lane, `m | lane`. Values computed from it keep this
// form, or lose the lane:
//
//   n + (m | lane)     (n + m) | lane          if n is a multiple of 32 too
//   (m | lane) / n     m / n
//   (m | lane) % n     (m % n) | lane
//   (m | lane) & c     (m & c) | lane          if c has the five bits of a lane
//
// So later passes see that `x / 64` is uniform, and that `x % 64` is consecutive over the lanes.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// All arithmetic is unsigned. kLaneFunction (ir/simdgroup.h) gives the lane.
void split_affine_lanes(llvm::Function& function);

}  // namespace kiln
