// Simdgroup loops: turns a simdgroup's function into a threadgroup's, with a loop over the simdgroups between barriers.
//
// If all simdgroups of a threadgroup take the same path from barrier to barrier, no simdgroup needs to suspend. The
// function is split into parallel regions at barriers, at branches that decide which barrier comes next, and at joins
// of such paths. Each region becomes a loop over the simdgroups. The code around the regions runs once for the
// threadgroup.
//
// Values uniform over the threadgroup stay as they are. Other values that are live in a later region are rematerialized
// if that is cheap, and otherwise spilled to the simdgroup's frame, where all variables are, too.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Function.h>

#include <cstdint>
#include <optional>

namespace kiln {

/// `simdgroup` is optimised and has the parameters of CpuSimdgroupFunction (core/cpu_functions.h), for full simdgroups;
/// `is_barrier` identifies barriers. Creates the CpuThreadgroupFunction `name` and returns a simdgroup frame's size in
/// bytes; nothing if simdgroups may take different paths to their barriers. `simdgroup` is erased in both cases.
///
/// `count`: the number of simdgroups, all in one x-line, or 0 if it is unknown.
std::optional<uint64_t> loop_over_simdgroups(llvm::Function& simdgroup, const char* name, unsigned count,
                                             llvm::function_ref<bool(const llvm::Instruction&)> is_barrier);

}  // namespace kiln
