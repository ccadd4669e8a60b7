// Functions that the GPU approximates (lowering/approximations.h), in math modes other than safe.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

/// Replaces all by the GPU's instruction: rsqrt.approx is within 2^-22.9 of the value (PTX ISA).
void approximate_for_gpu(llvm::Module& module);

/// Correctly rounded reciprocal roots from the hardware's estimates, in all math modes.
void round_rsqrt_for_gpu(llvm::Module& module);

}  // namespace kiln
