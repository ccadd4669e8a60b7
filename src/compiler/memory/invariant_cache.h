// Invariant cache: a table of values that all simdgroups of a launch compute identically.
//
// Each simdgroup of a matrix-vector product loops over the vector, loads a part, shuffles it into lane order and adds
// it up: the same for every row of the matrix. In such a loop with a compile-time trip count, each worker of the launch
// computes what depends only on the launch and the iteration once, in a loop of its own before, and the loop loads it
// from a table.
//
// Rejected: two simdgroups at once, with shared code plus a second copy of the divergent part. They need twice the
// registers, and sharing their shuffled vector gained 2 % where the table gains 20.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include <cstdint>

namespace kiln {

/// For an optimised CpuSimdgroupFunction (core/cpu_functions.h) without suspend points. Returns the size of the tables
/// in bytes (CpuImageHeader::table_bytes), in the function's parameter for them; 0 if no table pays off.
uint64_t cache_invariants(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace kiln
