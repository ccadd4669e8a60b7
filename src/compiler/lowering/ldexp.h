// Products with powers of two (`__kiln_scaled`, device/engine/thread.h). AVX-512 has an instruction for them; other
// instruction sets need two multiplications.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

namespace kiln {

bool is_ldexp(const llvm::Instruction& instruction);

/// Allows LLVM to move and speculate them like arithmetic.
void describe_ldexp(llvm::Module& module);

/// Replaces the remaining ones by multiplications.
void expand_ldexp(llvm::Module& module);

/// Uses AVX-512's instruction on a vector of 16 floats or a multiple of that.
llvm::Value* scale_by_instruction(llvm::Value* values, llvm::Value* exponents, llvm::IRBuilder<>& builder);

}  // namespace kiln
