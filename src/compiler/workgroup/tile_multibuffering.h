// Loops in which a threadgroup loads a tile into its memory, waits, reads the tile, and waits: several tiles at a time.
//
// A simdgroup's sums over all tiles would be stored and loaded around each barrier, since the simdgroups take turns.
// With room for several tiles, all of those are loaded, and then each simdgroup goes through them with its sums in
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
// It is the same where what is written is all that the loop writes, nothing of it is read but behind the barrier, each
// iteration writes the same places, and nobody outside the loop knows what lies in threadgroup memory. What is read but
// not written was never written, and is anything.
//
// Of memory that others wrote before the loop, or write behind it, the first part of a later iteration knew by the
// barriers of those before. A loop over simdgroups stops where the loop over batches begins and goes round, as at a
// barrier
// (`split_joins`, workgroup/simdgroup_loops.cpp), so that nothing may fold that loop before.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/GlobalVariable.h>

#include <cstdint>

#include "compiler/ir/vector_isa.h"

namespace kiln {

struct TileMultibuffering {
  bool changed = false;
  // For the tiles of one threadgroup; null where there are no batches. In its stead there is to be one for each
  // threadgroup that runs.
  llvm::GlobalVariable* tiles = nullptr;
};

/// `simdgroup` is optimised, for full simdgroups, and has the parameters of CpuSimdgroupFunction (core/cpu_image.h);
/// its threadgroup memory has `bytes`.
TileMultibuffering multibuffer_tiles(llvm::Function& simdgroup, uint64_t bytes, VectorRegisters registers,
                                     llvm::function_ref<bool(const llvm::Instruction&)> is_barrier);

}  // namespace kiln
