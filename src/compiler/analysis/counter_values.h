// Values that become constants where loops are unrolled completely: those that are computed from constants and from the
// counters of loops alone.
#pragma once

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>

#include <cstdint>

namespace kiln {

using LoopSet = llvm::SmallPtrSet<llvm::Loop*, 4>;

/// Whether the value becomes a constant; adds the loops that must be unrolled for it to `unrolled`. Where paths
/// join, it does not. The search ends after 64 values, with no.
bool becomes_constant(llvm::Value* value, const llvm::LoopInfo& loops, LoopSet& unrolled);

/// As LLVM's unroller counts them: by any exit. 0: not known.
uint64_t constant_trips(llvm::Loop& loop, llvm::ScalarEvolution& evolution);

}  // namespace kiln
