// Collectives of a simdgroup as pseudo-intrinsics of one lane, which the widener makes permutations of vectors.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>

namespace kiln {

// Functions of one lane; the name is followed by the bits of the value, as in `i32 __kiln_lanes_shuffle32(i32, i32)`.
enum class LaneOperation {
  kNone,      // another function
  kShuffle,   // (value, source): the value of lane source % 32, 0 where that takes no part
  kVote,      // (i1): a bit for each lane that takes part
  kTake,      // (value, identity): the value where the lane takes part
  kExchange,  // (value, distance): that of lane xor distance, a constant
  kUp,        // (value, distance): that of the lane `distance` before, a constant; its own where there is none
  kFirst,     // (value): that of lane 0
  kMultiply,  // (a's first, a's second, b's, c's): an element of a b + c, from floats (lowering/matrix_products.h)
};

LaneOperation lane_operation(const llvm::Value* value);

/// Whether the result is the same in all threads whatever the operands are.
bool is_uniform_collective(const llvm::Value* value);

/// A call at the insertion point, with the attributes that keep threads together.
llvm::CallInst* call_lane_operation(llvm::IRBuilderBase& builder, LaneOperation operation,
                                    llvm::ArrayRef<llvm::Value*> arguments, llvm::Type* result);

}  // namespace kiln
