// Threadgroup variables in the one block of memory that a launch requests.
//
// The block is dynamic, since a kernel's static variables may not exceed 48 KB together. While code is optimized, each
// variable stays separate, so that the optimizer knows that they do not alias.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>
#include <string>

namespace kiln {

/// Moves threadgroup variables to the shared address space.
void move_threadgroup_variables(llvm::Module& module);

/// Lays the variables out in the block and returns its size in bytes. Must run after all optimization.
uint64_t lay_out_threadgroup_memory(llvm::Module& module);

/// The most threadgroup memory that GPUs of the architecture ("sm_90") have for a threadgroup.
uint64_t threadgroup_memory_limit(const std::string& architecture);

}  // namespace kiln
