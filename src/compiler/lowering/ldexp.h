// Products with powers of two (`__kiln_scaled`, device/engine/thread.h): AVX-512 has an instruction for them, others
// take two multiplications.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

namespace kiln {

bool is_scaling(const llvm::Instruction& instruction);

/// Lets them be moved as arithmetic is.
void describe_scaling(llvm::Module& module);

/// By multiplications, where they are left.
void expand_scaling(llvm::Module& module);

/// By AVX-512's instruction: of a vector of 16 floats or a multiple of that.
llvm::Value* scale_by_instruction(llvm::Value* values, llvm::Value* exponents, llvm::IRBuilder<>& builder);

}  // namespace kiln
