// Members of structures in memory, as `x[4 * i + 1]` and the components of a `float4`: each member of all lanes is
// every fourth element of the same registers, which are loaded once for all members.
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>

#include <algorithm>

#include "compiler/passes/widener.h"

namespace kiln::widening {

bool move_before(Value* value, Instruction& place, unsigned depth) {
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || instruction->getParent() != place.getParent() || instruction->comesBefore(&place)) return true;
  if (depth > 12 || instruction == &place || isa<PHINode>(instruction) || instruction->mayReadOrWriteMemory() ||
      !isSafeToSpeculativelyExecute(instruction))
    return false;
  for (Value* operand : instruction->operands())
    if (!move_before(operand, place, depth + 1)) return false;
  instruction->moveBefore(&place);
  return true;
}

std::optional<int64_t> distance(Value* from, Value* to, uint64_t bytes, ScalarEvolution& evolution) {
  const auto* constant = dyn_cast<SCEVConstant>(evolution.getMinusSCEV(evolution.getSCEV(to), evolution.getSCEV(from)));
  if (!constant || constant->getAPInt().getSignificantBits() > 32) return std::nullopt;
  int64_t distance = constant->getAPInt().getSExtValue();
  if (distance % static_cast<int64_t>(bytes) != 0) return std::nullopt;
  return distance / static_cast<int64_t>(bytes);
}

// A load's guard lets a row through exactly where the first one's does: it is the same, or compares with the same limit
// what is as far from the first one's offset as the address is.
bool Widener::joins(const Group& group, LoadInst& load, ScalarEvolution& evolution, Member& member) {
  LoadInst& first = *group[0].load;
  if (load.getType() != first.getType()) return false;
  uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  auto guard = guarded(load.getPointerOperand()), first_guard = guarded(first.getPointerOperand());
  if (guard.has_value() != first_guard.has_value()) return false;
  Value* address = guard ? guard->address : load.getPointerOperand();
  Value* first_address = first_guard ? first_guard->address : first.getPointerOperand();
  uint64_t step = step_of(first_address, bytes);
  if (step < 2 || step_of(address, bytes) != step) return false;
  std::optional<int64_t> place = distance(first_address, address, bytes, evolution);
  if (!place) return false;
  if (guard && guard->allowed != first_guard->allowed) {
    auto *one = dyn_cast<ICmpInst>(guard->allowed), *other = dyn_cast<ICmpInst>(first_guard->allowed);
    if (!one || !other || one->getPredicate() != ICmpInst::ICMP_ULT || other->getPredicate() != ICmpInst::ICMP_ULT ||
        one->getOperand(1) != other->getOperand(1) ||
        distance(other->getOperand(0), one->getOperand(0), bytes, evolution) != place)
      return false;
  }
  int64_t lowest = *place, highest = *place;
  for (const Member& other : group) {
    lowest = std::min(lowest, other.place);
    highest = std::max(highest, other.place);
  }
  if (highest - lowest >= static_cast<int64_t>(step)) return false;
  member = {&load, *place};
  return true;
}

void Widener::find_groups(ScalarEvolution& evolution) {
  for (BasicBlock& block : from_) {
    SmallVector<Group> groups;
    for (Instruction& instruction : make_early_inc_range(block)) {
      // What is written in between may be what is read.
      if (instruction.mayWriteToMemory())
        erase_if(groups,
                 [](const Group& group) { return !group[0].load->hasMetadata(LLVMContext::MD_invariant_load); });
      auto* load = dyn_cast<LoadInst>(&instruction);
      if (!load || !load->isSimple() || !differs(load->getPointerOperand())) continue;
      Member member;
      auto group = find_if(groups, [&](const Group& group) {
        return joins(group, *load, evolution, member) && move_before(load->getPointerOperand(), *group[0].load);
      });
      if (group != groups.end())
        group->push_back(member);
      else
        groups.push_back({{load, 0}});
      for (const Group& made : groups)
        if (made.size() > 1) groups_[made[0].load] = made;
    }
  }
}

void Widener::load_group(const Group& group, IRBuilder<>& builder) {
  const Member& lowest =
      *std::min_element(group.begin(), group.end(), [](const Member& a, const Member& b) { return a.place < b.place; });
  LoadInst& load = *lowest.load;
  Value *pointer = load.getPointerOperand(), *allowed = nullptr;
  if (auto guard = guarded(pointer)) {
    pointer = guard->address;
    allowed = guard->allowed;
  }
  uint64_t bytes = layout_.getTypeStoreSize(load.getType()), step = step_of(pointer, bytes);
  SmallVector<uint64_t> places;
  DenseSet<uint64_t> different;
  for (const Member& member : group) {
    places.push_back(static_cast<uint64_t>(member.place - lowest.place));
    different.insert(places.back());
  }
  auto together = [&](Value* address) {
    return load_steps(load.getType(), address, step, load.getAlign(), places, builder);
  };
  auto apart = [&]() -> Values {
    Values results;
    for (const Member& member : group) {
      widen_load_apart(*member.load, builder);
      results.push_back(vectors_[member.load]);
    }
    return results;
  };
  Row shape{bytes, (step * kLanes - 1) * bytes, different.size() == step, true};
  for (auto [member, result] : zip_equal(group, by_shape(pointer, allowed, shape, builder, together, apart)))
    vectors_[member.load] = result;
}

}  // namespace kiln::widening
