// The functions that the SIMD engine puts around the code of a simdgroup: rows of threads, full simdgroups,
// threadgroups.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/GlobalVariable.h>

#include "core/launch_form.h"

namespace kiln {

inline constexpr const char* kGroupFunction = "__kiln_simdgroup";
inline constexpr const char* kThreadgroupFunction = "__kiln_threadgroup";
inline constexpr const char* kRowFunction = "__kiln_simd_row";

/// A CpuRowFunction without a body.
llvm::Function& add_simd_row(llvm::Function& group);

/// Fills `row` with a loop over full simdgroups, which need no mask, and a call for the remaining threads. `in_pairs`:
/// the function takes its half of a coarsened pair (workgroup/thread_coarsening.h). `part_of_group` runs the remaining
/// threads; it may be `group`.
void run_in_groups(llvm::Function& row, llvm::Function& group, llvm::Function& part_of_group, bool in_pairs);

/// The same with one call, so that long code is there once: full simdgroups have a mask, too.
void run_with_masks(llvm::Function& row, llvm::Function& group, bool in_pairs);

/// Fills `row` with loops over rows, as many as its last argument says or one, and over simdgroups. `whole` runs a full
/// simdgroup whose accesses are all consecutive, and returns false where they are not; then `group` runs it. `group` is
/// called outside of the loop that mostly runs, so that no register is kept for it there. `whole_takes_rest`: `whole`
/// runs simdgroups with fewer threads too.
void run_rows(llvm::Function& row, llvm::Function& whole, llvm::Function& group, bool in_pairs, bool takes_rows,
              bool whole_takes_rest);

/// Moves loads of the launch and of the first thread's record to the entry. They are always valid, so they can leave
/// loops that may not run.
void read_launch_first(llvm::Function& row);

/// Replaces a threadgroup's variable by one on the stack of the function for one threadgroup; removes it where that
/// function is null.
void put_on_stack(llvm::GlobalVariable& variable, llvm::Function* threadgroup);

/// Fills `row` with a loop over pairs of simdgroups, 64 threads each, and in it a loop over both halves by `full`. The
/// remaining threads run in `group`, under a mask.
void run_coarsened(llvm::Function& row, llvm::Function& full, llvm::Function& group);

/// A copy of `group` for simdgroups of which every lane has a thread. `count`: the simdgroups of a threadgroup that is
/// one row of them; 0: any.
llvm::Function* full_simdgroup(llvm::Function& group, const LaunchForm& form);

}  // namespace kiln
