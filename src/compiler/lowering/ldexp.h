// Products with powers of two (`__kiln_scaled`, device/engine/thread.h). Some processors have an instruction for them;
// others need two multiplications.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include "compiler/ir/vector_isa.h"

namespace kiln {

bool is_ldexp(const llvm::Instruction& instruction);

/// Replaces the remaining ones by multiplications.
void expand_ldexp(llvm::Module& module);

/// Uses the processor's instruction, which it must have, on floats in whole registers.
llvm::Value* scale_by_instruction(llvm::Value* values, llvm::Value* exponents, const VectorIsa& vector_isa,
                                  llvm::IRBuilder<>& builder);

}  // namespace kiln
