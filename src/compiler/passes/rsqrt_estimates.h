// Estimates of 1 / sqrt(x) (`__kiln_rsqrt_estimate`, device/engine/thread.h), which a correction makes the correctly
// rounded value: AVX-512 has an instruction for a rough one, others take a root and a division.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

namespace kiln {

bool is_rsqrt_estimate(const llvm::Instruction& instruction);

/// Lets them be moved as arithmetic is.
void describe_rsqrt_estimates(llvm::Module& module);

/// By a root and a division, where they are left.
void expand_rsqrt_estimates(llvm::Module& module);

/// By AVX-512's instruction and a step of Newton's: of a vector of 16 floats or a multiple of that.
llvm::Value* estimate_rsqrt(llvm::Value* values, llvm::IRBuilder<>& builder);

}  // namespace kiln
