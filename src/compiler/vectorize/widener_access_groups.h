// Accesses at constant distances from one another, which are emitted together: interleaved accesses and loads that
// share a bounds check.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <optional>

namespace kiln::widening {

using namespace llvm;

struct Member {
  Instruction* access;
  int64_t offset;         // in elements, from the first access's address
  bool may_wrap = false;  // whether it is the offset only if no narrow index wraps
};
using AccessGroup = SmallVector<Member>;

/// The distance between two addresses in elements; nothing if it is unknown or not a whole number of elements.
std::optional<int64_t> distance(Value* from, Value* to, uint64_t bytes, ScalarEvolution& evolution);

/// The distance between two addresses or offsets in elements if no narrow index in them wraps, as `x[3 * i]` and
/// `x[3 * i + 1]` have it where `i` is a `uint`: the difference of two extended numbers that differ by a constant.
struct UnwrappedDistance {
  int64_t elements;
  uint64_t end;  // the bytes at which the extended numbers end, from zero on
};
std::optional<UnwrappedDistance> distance_unless_wrapped(Value* from, Value* to, uint64_t bytes,
                                                         ScalarEvolution& evolution);

/// The member with the lowest address.
const Member& lowest_member(const AccessGroup& group);
/// Whether offsets of members depend on indices that do not wrap.
bool may_wrap(const AccessGroup& group);

/// Groups a block's simple loads that are candidates with the loads that join them, whose addresses it moves before the
/// first of the group. Calls `keep` for each group of more than one when no more can join. `can_join` sets the member.
/// Each load is compared with the open groups of the block.
void group_loads(BasicBlock& block, function_ref<bool(LoadInst&)> is_candidate,
                 function_ref<bool(const AccessGroup&, LoadInst&, Member&)> can_join,
                 function_ref<void(const AccessGroup&)> keep);

}  // namespace kiln::widening
