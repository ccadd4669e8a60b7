// Functions that the processor approximates (`__kiln_rsqrt`, device/engine/thread.h), in math modes other than safe.
// Each call also has the correctly rounded value as an operand. That value remains if no instruction replaces it: in
// safe mode, on the scalar engine, for uniform numbers.
//
// Rejected: LLVM's own estimates, requested by flags on a root and a division. They give a NaN for 0 and infinity, but
// a body may compute the length of a vector that is 0 and multiply by it.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

namespace kiln {

bool is_rsqrt(const llvm::Instruction& instruction);

/// Allows LLVM to move and speculate them like arithmetic.
void describe_approximations(llvm::Module& module);

/// Replaces the remaining ones by the correctly rounded values.
void expand_approximations(llvm::Module& module);

/// Replaces all by NVIDIA's instruction: rsqrt.approx is within 2^-22.9 of the value (PTX ISA).
void approximate_for_gpu(llvm::Module& module);

/// For a vector of 16 floats, or a multiple of that. AVX-512 refines an estimate of 14 bits by one Newton step,
/// otherwise an estimate of 11.5 bits by two terms of the series in the residual: within 1.1 units in the last place
/// over all floats. Without AVX-512 subnormals count as 0.
llvm::Value* approximate_rsqrt(llvm::Value* values, bool has_avx512, llvm::IRBuilder<>& builder);

}  // namespace kiln
