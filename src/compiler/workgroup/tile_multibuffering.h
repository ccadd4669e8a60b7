// Tile multibuffering: a loop in which a threadgroup loads a tile into its memory, waits, reads the tile and waits
// handles several tiles at a time.
//
// The simdgroups run in turn, so a simdgroup's sums over all tiles would be stored and reloaded around each barrier.
// With buffers for several tiles, all of those are loaded first. Then each simdgroup reads them all with its sums in
// registers:
//
//   for (k…) { write(tile, k); barrier; sums = read(tile, sums); barrier; }
//
//   for (K…) {
//     for (k of K) write(tiles[k], k);
//     barrier;
//     for (k of K) sums = read(tiles[k], sums);
//     barrier;
//   }
//
// This is equivalent if the loop writes nothing but the tile, reads the tile only after the barrier, writes the same
// addresses in each iteration, and if no code outside the loop knows the contents of threadgroup memory. An address
// that is read but not written was never written, and has any value.
//
// A barrier of an earlier iteration also ordered the first part of a later one with memory that others wrote before the
// loop, or write after it. A loop over simdgroups ends at the header and the latch of the loop over batches as at a
// barrier (`split_joins`, workgroup/simdgroup_loops.cpp). So no pass may fold that loop before.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/GlobalVariable.h>

#include <cstdint>

#include "compiler/ir/vector_isa.h"

namespace kiln {

struct TileMultibuffering {
  bool changed = false;
  // For the tiles of one threadgroup; null if there are no batches. The caller replaces it by one for each running
  // threadgroup.
  llvm::GlobalVariable* tiles = nullptr;
};

/// `simdgroup` is optimised, for full simdgroups, and has the parameters of CpuSimdgroupFunction
/// (core/cpu_functions.h); `bytes` is the size of its threadgroup memory.
TileMultibuffering multibuffer_tiles(llvm::Function& simdgroup, uint64_t bytes, const VectorIsa& vector_isa,
                                     llvm::function_ref<bool(const llvm::Instruction&)> is_barrier);

}  // namespace kiln
