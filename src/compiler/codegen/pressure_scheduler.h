// Orders a block's instructions for low register pressure, before LLVM's scheduler and register allocator.
//
// The code of several simdgroups, or of several registers of one, comes step by step: the results of a step wait for
// the same step of all others. If they exceed the registers, each is spilled and reloaded at each step. This pass
// computes everything that one result needs before it begins the next result.
//
// Streams, blocks that load vectors, transform and store them, get this order whatever the register pressure. It
// spreads loads and stores over the code, so that memory is busy during the computation. Each result is a chain of
// dependent instructions, so the next one begins before it ends. In a loop eight vectors are loaded before one of them
// is stored, if registers suffice: an Emerald Rapids delays a load after a store to an address with the same low 12
// bits. An RMS norm whose output lies 16 to 64 bytes beyond a multiple of 4 KiB after its input takes up to 1.8 times
// as long with registers of 32 bytes where each vector is stored at once; on a Zen 4 both take the same.
#pragma once

#include <llvm/IR/Function.h>

#include "compiler/ir/vector_isa.h"

namespace kiln {

/// Orders such blocks, and splits their vectors into registers (split_vectors.h). If registers are few, it also orders
/// blocks whose vectors do not fit into them; otherwise also loops of a few sums, whose computations it interleaves.
/// LLVM's scheduler runs later and begins with this order.
void schedule_for_pressure(llvm::Function& function, const VectorIsa& vector_isa);

}  // namespace kiln
