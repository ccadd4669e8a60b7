// A threadgroup's code from a simdgroup's: between barriers a loop over the simdgroups.
//
// Where all simdgroups of a threadgroup take the same way from barrier to barrier, nobody needs to stop and go on. The
// function is cut into regions that begin and end where the whole threadgroup is: at barriers, at branches that decide
// which barrier comes next, and where such ways meet. Each region becomes a loop over the simdgroups, and what
// surrounds the regions is run once for the threadgroup.
//
// Values that are the same for the whole threadgroup stay as they are. Others that are wanted in a later region are
// computed again where that is cheap, and otherwise lie in the simdgroup's frame meanwhile, as all variables do.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Function.h>

#include <cstdint>
#include <optional>

namespace kiln {

/// `simdgroup` is optimised and has the parameters of CpuSimdgroupFunction (core/cpu_image.h), for full simdgroups;
/// `is_barrier` tells its calls. Makes a CpuThreadgroupFunction of it, `name`, and gives the bytes of a simdgroup's
/// frame; nothing where simdgroups may take different ways to their barriers. `simdgroup` is used up in both cases.
///
/// `count`: how many simdgroups there are, all in one row, or 0 where that is not known.
std::optional<uint64_t> loop_over_simdgroups(llvm::Function& simdgroup, const char* name, unsigned count,
                                             llvm::function_ref<bool(const llvm::Instruction&)> is_barrier);

}  // namespace kiln
