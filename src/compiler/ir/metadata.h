// Names of the metadata that passes set for later passes. The metadata has no operands.
#pragma once

#include <llvm/IR/Instruction.h>
#include <llvm/IR/Metadata.h>

namespace kiln {

/// On an alloca of widened code that is written before each read: it holds no value across iterations.
inline constexpr const char* kScratch = "kiln.scratch";

/// On a branch that nearly always takes one edge (ir/likely.h).
inline constexpr const char* kLikely = "kiln.likely";

/// On the latch's branch of a loop over multibuffered tiles (workgroup/tile_multibuffering.h).
inline constexpr const char* kTileLoop = "kiln.tiles";

/// On a store, masked store or scatter of widened code whose n-th element is the n-th lane's: a piece of interleaved
/// elements has none.
inline constexpr const char* kOfLanes = "kiln.of-lanes";

inline void mark_of_lanes(llvm::Instruction& store) {
  store.setMetadata(kOfLanes, llvm::MDNode::get(store.getContext(), {}));
}

/// On a collective whose result is uniform.
inline constexpr const char* kUniform = "kiln.uniform";

inline void mark_uniform(llvm::Instruction& exchange) {
  exchange.setMetadata(kUniform, llvm::MDNode::get(exchange.getContext(), {}));
}

/// On the aligned stores of a loop: between two barriers, a thread writes to an address once with all that have this
/// node.
inline constexpr const char* kDisjoint = "kiln.disjoint";

/// On the accesses of a block of iterations to its rows and its tiles (vectorize/row_blocks.h). Those to rows run only
/// if those of all active lanes are in bounds and none wraps from one iteration to another. Its operand is the number
/// of the loop's access.
inline constexpr const char* kRowBlock = "kiln.row-block";

/// On a load in a loop that is unrolled, so that it is beside others of the row (vectorize/row_unrolling.h).
inline constexpr const char* kRowPart = "kiln.row-part";

/// On a load or store whose alignment is proved.
inline constexpr const char* kAligned = "kiln.aligned";

inline void mark_aligned(llvm::Instruction& access) {
  access.setMetadata(kAligned, llvm::MDNode::get(access.getContext(), {}));
}

}  // namespace kiln
