// Functions of which the processor has an approximation (`__kiln_rsqrt`, device/engine/thread.h), in math modes other
// than safe. Each has its correctly rounded value as an operand, too, which stays where no instruction takes its place:
// in safe mode, on the scalar engine, for numbers that all lanes share.
//
// Rejected: LLVM's own estimates, by flags on a root and a division. Of 0 and infinity they give a NaN, where the body
// may ask for the length of a vector that is 0 and multiply by it.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

namespace kiln {

bool is_rsqrt(const llvm::Instruction& instruction);

/// Lets them be moved as arithmetic is.
void describe_approximations(llvm::Module& module);

/// The correctly rounded values, where they are left.
void expand_approximations(llvm::Module& module);

/// NVIDIA's instructions, for all: rsqrt.approx is within 2^-22.9 of the value (PTX ISA).
void approximate_for_gpu(llvm::Module& module);

/// Of a vector of 16 floats, or a multiple of that: from an estimate of the processor's, with AVX-512 of 14 bits and a
/// step of Newton's, else of 11 and a half and two terms of the series in the residual: within 1.1 units in the last
/// place over all floats. Without AVX-512 subnormals count as 0.
llvm::Value* approximate_rsqrt(llvm::Value* values, bool has_avx512, llvm::IRBuilder<>& builder);

}  // namespace kiln
