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
// In threadgroups of 2 to 16 threads a row it is a sum of a smaller power of two's multiples and the lane. Changes of
// the bits below are changes of the lane's, and a shift of a sum that does not wrap is one of each part:
//
//   (16 n + lane) ^ 1     16 n + (lane ^ 1)
//   (16 n + lane) & ~3    16 n + (lane & ~3)
//   i - (i & 3)           the same, as threads find the first one of their group
//   (16 n + lane) >> 1    8 n + (lane >> 1)
//
// So later passes see that `x / 64` is uniform, and that `x % 64` is consecutive over the lanes, and that `x ^ 1` and
// `x >> 1` differ between them by known numbers.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// All arithmetic is unsigned. kLaneFunction (ir/simdgroup.h) gives the lane.
void split_affine_lanes(llvm::Function& function);

/// Changes and shifts of the lowest bits alone. For code before InstCombine, which clears more bits in `i & ~1` where
/// it knows that they are 0, so that it is no change of the lane any more, and splits `i & 15` but not `i - (i & 15)`.
void split_lowest_bits(llvm::Function& function);

}  // namespace kiln
