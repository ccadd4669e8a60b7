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
  int64_t offset;  // in elements, from the first access's address
};
using AccessGroup = SmallVector<Member>;

/// An element's number that is extended to an address: `base + extended(number)` elements.
struct AccessIndex {
  Value *base, *number;
  bool is_signed;
};

/// Nothing if the address is not of this form, or if the offset that its guard compares is not `number`, extended in
/// the same way, times the element's size.
std::optional<AccessIndex> index_of(Value* address, Value* offset, uint64_t bytes, const DataLayout& layout);

/// The distance between two addresses in elements; nothing if it is unknown or not a whole number of elements.
std::optional<int64_t> distance(Value* from, Value* to, uint64_t bytes, ScalarEvolution& evolution);

/// The distance between the lanes' own addresses in elements if their indices do not wrap between one and the other,
/// such as 1 from `x[3 * i]` to `x[3 * i + 1]`: a bounds check that both are below the end of the index's type shows
/// that. The offsets that the guards compare must be of the same indices.
std::optional<int64_t> distance_without_wrapping(const AccessIndex& from, const AccessIndex& to,
                                                 ScalarEvolution& evolution);

int64_t lowest_offset(const AccessGroup& group);
/// The access with the lowest address.
Instruction& lowest_access(const AccessGroup& group);

/// Groups a block's simple loads that are candidates with the loads that join them, whose addresses it moves before the
/// first of the group. Calls `keep` for each group of more than one when no more can join. `can_join` sets the member.
/// Each load is compared with the open groups of the block.
void group_loads(BasicBlock& block, function_ref<bool(LoadInst&)> is_candidate,
                 function_ref<bool(const AccessGroup&, LoadInst&, Member&)> can_join,
                 function_ref<void(const AccessGroup&)> keep);

}  // namespace kiln::widening
