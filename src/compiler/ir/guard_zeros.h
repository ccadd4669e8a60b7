// Constant zeros, which a load reads whose bounds guard fails (lowering/bounds_guards.h).
#pragma once

#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Module.h>

#include <cstdint>

namespace kiln {

// The prefix of the variables' names; the number of bytes follows.
inline constexpr const char* kZeros = "__kiln_zeros.";

bool is_zeros(const llvm::Value* pointer);

/// A variable of at least so many bytes. `address_space`: of one that is not there yet.
llvm::GlobalVariable* zeros_of(llvm::Module& module, uint64_t bytes, unsigned address_space = 0);

}  // namespace kiln
