// The function that a GPU starts: its one parameter is the block of core/gpu_image.h.
//
// What the body's arguments are is read from the block, and where the thread stands is computed from the hardware's
// numbers. The last threadgroups of a grid are smaller, but hardware starts all of them at full size: their threads are
// counted anew in the order of the hardware, so that a simdgroup stays 32 threads that follow one another, and the
// surplus ones, which are the last, return at once. A grid of one row, the most common, needs none of it but one
// comparison; whether it is one is the same for all threads.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>

#include <string>

#include "core/kernel_unit.h"

namespace kiln {

// `i32 __kiln_simdgroup()`: the index in its threadgroup of a simdgroup's first thread. With the lane
// (analysis/uniformity.h) it stands for a thread's index while simdgroups' threads must be told apart.
inline constexpr const char* kSimdgroupFunction = "__kiln_simdgroup";
// `i32 __kiln_launched()`: a bit for each lane of the simdgroup that the launch has.
inline constexpr const char* kLaunchedFunction = "__kiln_launched";

/// Writes a thread's index as its simdgroup's and its lane.
void separate_index(llvm::Function& body);

/// A kernel that calls kBodyFunction, inlined. Also replaces what `separate_index` has written.
llvm::Function& make_kernel_entry(llvm::Module& module, const KernelUnit& unit);

/// The thread ends here. What follows is never reached, but LLVM does not know.
void create_exit(llvm::IRBuilderBase& builder);

/// Reads of shapes, strides and ranks at constant places in the block become reads of the parameter. After
/// optimisation more of them are such.
void read_parameters(llvm::Function& kernel);

/// Guards of whole elements, at multiples of their size, compare with the block's own numbers: what of an argument can
/// be accessed ends behind an element. `kernel` is optimised.
void compare_with_ends(llvm::Function& kernel, const KernelUnit& unit);

}  // namespace kiln
