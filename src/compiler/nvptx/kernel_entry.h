// The function that a GPU starts: its one parameter is the block of core/gpu_image.h.
//
// It reads the body's arguments from the block and computes the thread's position from special registers. The last
// threadgroups of a grid are smaller, but the hardware starts all of them at full size. Their threads are renumbered in
// the order of the hardware, so that a simdgroup stays 32 consecutive threads; the surplus ones, which are the last,
// return at once. A one-dimensional grid, the most common, needs none of it but one comparison, and that test is
// uniform.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>

#include <string>

#include "core/kernel_unit.h"

namespace kiln {

/// Rewrites a thread's index in terms of its simdgroup and its lane.
void split_thread_index(llvm::Function& body);

/// Makes a kernel that calls kBodyFunction, inlined. Also replaces the calls that `split_thread_index` has inserted.
llvm::Function& make_kernel_entry(llvm::Module& module, const KernelUnit& unit);

/// Ends the thread. The code after it is never reached, but LLVM does not know that.
void create_exit(llvm::IRBuilderBase& builder);

/// Loads of shapes, strides and ranks at constant offsets in the block become loads of the parameter. Optimization
/// makes more offsets constant.
void read_parameters(llvm::Function& kernel);

/// Guards of whole elements, at multiples of their size, compare with the end in the block itself: the accessible bytes
/// of an argument end after an element. `kernel` is optimized.
void compare_guards_with_ends(llvm::Function& kernel, const KernelUnit& unit);

}  // namespace kiln
