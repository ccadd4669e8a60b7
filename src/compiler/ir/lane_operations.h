// Collectives of a simdgroup as pseudo-intrinsics of one lane, which the widener lowers to permutations of vectors.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>

namespace kiln {

// Functions of one lane; the value's bit width ends the name, as in `i32 __kiln_lanes_shuffle32(i32, i32)`.
enum class LaneOperation {
  kNone,      // another function
  kShuffle,   // (value, source): the value of lane source % 32, 0 if that lane is inactive
  kVote,      // (i1): the bits of the active lanes
  kTake,      // (value, identity): the value in active lanes, else the identity
  kExchange,  // (value, distance): the value of lane xor distance, a constant
  kUp,        // (value, distance): the value of lane - distance, a constant; its own if there is none
  kFirst,     // (value): the value of lane 0
  kMultiply,  // (a's first, a's second, b's, c's): an element of a b + c, from floats (lowering/matrix_products.h)
};

LaneOperation lane_operation(const llvm::Value* value);

/// Whether the result is uniform whatever the operands are.
bool is_uniform_collective(const llvm::Value* value);

/// A call at the insertion point, with the attributes of a convergent operation.
llvm::CallInst* call_lane_operation(llvm::IRBuilderBase& builder, LaneOperation operation,
                                    llvm::ArrayRef<llvm::Value*> arguments, llvm::Type* result);

}  // namespace kiln
