// Threadgroup variables in the one block of memory that a launch asks for.
//
// It is dynamic, since variables of a kernel's own may not exceed 48 KB together. While code is optimised each is a
// variable of its own, so that the optimiser knows them apart.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>
#include <string>

namespace kiln {

/// Moves threadgroup variables to the memory of threadgroups.
void move_threadgroup_variables(llvm::Module& module);

/// Lays them out in the block and returns its bytes. After all optimisation.
uint64_t lay_out_threadgroup_memory(llvm::Module& module);

/// The most that a threadgroup can have on GPUs of the architecture ("sm_90").
uint64_t threadgroup_memory_limit(const std::string& architecture);

}  // namespace kiln
