// A thread's position, index and sizes in the SIMD engine's code: computed from its lane and the record of the first
// thread.
#pragma once

#include <llvm/IR/Function.h>

#include "core/launch_form.h"

namespace kiln {

/// Replaces kValueFunction by loads of the simdgroup's record, and a thread's position by that of its first thread and
/// its lane. If `is_by_simdgroups`, `group` is one simdgroup, which may cover several rows, and has the parameters of
/// CpuSimdgroupFunction (core/cpu_functions.h); else it has those of RowParameter (workgroup/thread_coarsening.h).
/// `is_signed`: bodies divide positions as signed numbers, so that the code must show that they are not negative.
/// Linear in the code.
void lower_positions(llvm::Function& group, const LaunchForm& form, bool is_by_simdgroups, bool is_signed);

}  // namespace kiln
