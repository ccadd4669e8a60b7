// Loads and stores of matrices, whose lanes access eight rows in memory, a few lanes at each: an access per row and
// permutations, instead of 64 scalar accesses.
//
// A thread has two elements of a matrix. Their accesses are joined if they are at a constant distance: only then does a
// row's access touch nothing but elements of some lane. The distance between rows may be known at run time only.
//
// The search is linear in the accesses, each of which is compared with the one before it.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>

#include "compiler/vectorize/widener_lane_accesses.h"
#include "compiler/vectorize/widener_lane_scalars.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_tile_addresses.h"

namespace kiln::widening {

class Tiles {
 public:
  Tiles(ScalarEvolution& evolution, TileAddresses& tile_addresses, LaneScalars& lane_scalars,
        LaneAccesses& lane_accesses, Lanes& lanes)
      : evolution_(evolution),
        tile_addresses_(tile_addresses),
        lane_scalars_(lane_scalars),
        lane_accesses_(lane_accesses),
        lanes_(lanes),
        layout_(lanes.layout()) {}

  /// Called once, before the function is widened. Moves addresses of second loads to the first ones.
  void find(Function& from);

  /// Whether a tile is emitted at this access.
  bool is_at(const Instruction& access) const { return tiles_.contains(&access); }
  /// Whether the store is emitted later, with another one of its tile.
  bool is_deferred(const Instruction& store) const { return deferred_.contains(&store); }

  /// Emits the tile at the load, and sets its loads' vectors. False: there is none.
  bool load(LoadInst& load, IRBuilder<>& builder);
  /// If not all of the tile is in bounds its stores are single ones, which may have any other shape: that is the
  /// caller's choice, by `store_single`.
  bool store(StoreInst& store, IRBuilder<>& builder, function_ref<void(StoreInst&)> store_single);

 private:
  // Consecutive elements in memory, each of which belongs to some lane.
  struct Strip {
    unsigned access, lane;           // of the first element
    SmallVector<unsigned> elements;  // index of each among all: access * kLanes + lane
  };

  // One or two accesses of a thread, as to a matrix's two elements, that together form strips.
  struct Tile {
    SmallVector<Instruction*, 2> accesses;
    SmallVector<Strip> strips;
    uint64_t bytes;               // of an element
    bool has_constant_distances;  // whether the distances between strips are known at compile time
  };

  bool make_tile(ArrayRef<Instruction*> accesses, ArrayRef<LaneOffsets> lane_offsets, Tile& tile) const;
  Value* check_bounds(const Tile& tile, IRBuilder<>& builder);
  Values emit(const Tile& tile, IRBuilder<>& builder, Emitter vectorized, Emitter scalarized);

  ScalarEvolution& evolution_;
  TileAddresses& tile_addresses_;
  LaneScalars& lane_scalars_;
  LaneAccesses& lane_accesses_;
  Lanes& lanes_;
  const DataLayout& layout_;
  DenseMap<const Instruction*, Tile> tiles_;  // by the first load or the last store
  DenseSet<const Instruction*> deferred_;     // the other stores
};

}  // namespace kiln::widening
