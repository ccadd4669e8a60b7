// Copies from device to threadgroup memory that do not go through registers (`cp.async`, from sm_80 on).
//
// A thread that loads an element of a tile and stores it waits for the load, and has registers for what is in flight.
// `cp.async` copies 16 bytes without either; the thread waits for all of its copies once, at the next barrier, before
// others may read the tile. On an H100, a tiled product of halves takes a tenth less time.
//
// A load and a store become such a copy if nothing else uses what is loaded, the memory that is read does not change
// during a launch, and nothing else accesses the threadgroup variable between the barriers around the store
// (barrier_intervals.h): the store may be done at any time in between. A thread's asynchronous copies have no order. So
// those of an interval must write to different addresses, which alias analysis proves, or threadgroup_copies.h of a
// loop's copies. The wait is `cp.async.wait_all`, before each of the barriers that end the interval.
//
// Rejected: copies of 4 bytes, which every thread of most tiles makes. A scan, a product of floats and a Gaussian
// filter took 6, 8 and 11 % longer than with a load and a store. And copies of guarded loads by the operand that says
// how many bytes are read, the rest being zeros. It needs a guard on the whole copy, which is rare once guards have
// gone.
//
// Complexity: linear in the function for each variable and interval with copies, and quadratic in the number of its
// copies, which is limited.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

namespace kiln {

/// `function` has pointers with the address spaces that are known. Returns whether a copy was made.
bool copy_asynchronously(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace kiln
