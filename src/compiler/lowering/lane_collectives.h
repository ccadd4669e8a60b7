// What threads of a simdgroup exchange, as operations on the lanes of one vector.
//
// Within a simdgroup that runs as one vector nobody waits: when the code is at an exchange, all threads that will come
// to this instance of it are there, in the mask. So `__kiln_wait` (`convergence_points.h`) becomes permutations of
// lanes, which `widen()` knows, and the combining function between them, inlined: the order is CpuExchange's.
//
// A lane that takes no part counts as one with the identity. What is combined is therefore computed for all 32 lanes,
// also where the exchange stands under a mask, and a combining function must not branch.
//
// Barriers of the threadgroup stay. Those of a simdgroup order memory while code of one thread is optimised, and are
// dropped by `widen()`.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instruction.h>

#include <optional>
#include <string>

#include "compiler/lowering/convergence_points.h"

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
bool is_same_in_all_lanes(const llvm::Value* value);

/// Whether threads of a simdgroup come together for it.
bool is_done_together(const llvm::Instruction& instruction);

/// The number of the site, where the instruction is a call of `__kiln_wait`.
std::optional<unsigned> waits_at(const llvm::Instruction& instruction);

/// Returns why it cannot be done, or nothing.
std::string lower_exchanges(llvm::Function& function, llvm::ArrayRef<ExchangeSite> sites);

}  // namespace kiln
