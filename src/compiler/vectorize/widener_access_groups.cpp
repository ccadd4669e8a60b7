#include "compiler/vectorize/widener_access_groups.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>

#include <algorithm>

#include "compiler/ir/code_motion.h"

namespace kiln::widening {

std::optional<int64_t> distance(Value* from, Value* to, uint64_t bytes, ScalarEvolution& evolution) {
  const auto* constant = dyn_cast<SCEVConstant>(evolution.getMinusSCEV(evolution.getSCEV(to), evolution.getSCEV(from)));
  if (!constant || constant->getAPInt().getSignificantBits() > 32) return std::nullopt;
  int64_t distance = constant->getAPInt().getSExtValue();
  if (distance % static_cast<int64_t>(bytes) != 0) return std::nullopt;
  return distance / static_cast<int64_t>(bytes);
}

void group_loads(BasicBlock& block, function_ref<bool(LoadInst&)> is_candidate,
                 function_ref<bool(const AccessGroup&, LoadInst&, Member&)> can_join,
                 function_ref<void(const AccessGroup&)> keep) {
  SmallVector<AccessGroup> groups;
  auto close = [&](const AccessGroup& group) {
    if (group.size() > 1) keep(group);
  };
  for (Instruction& instruction : make_early_inc_range(block)) {
    // A write in between may change what is read.
    if (instruction.mayWriteToMemory())
      erase_if(groups, [&](const AccessGroup& group) {
        if (group[0].access->hasMetadata(LLVMContext::MD_invariant_load)) return false;
        close(group);
        return true;
      });
    auto* load = dyn_cast<LoadInst>(&instruction);
    if (!load || !load->isSimple() || !is_candidate(*load)) continue;
    Member member;
    auto group = find_if(groups, [&](const AccessGroup& group) {
      return can_join(group, *load, member) && move_before(load->getPointerOperand(), *group[0].access);
    });
    if (group != groups.end())
      group->push_back(member);
    else
      groups.push_back({{load, 0}});
  }
  for_each(groups, close);
}

int64_t lowest_offset(const AccessGroup& group) {
  int64_t lowest = group[0].offset;
  for (const Member& member : group) lowest = std::min(lowest, member.offset);
  return lowest;
}

Instruction& lowest_access(const AccessGroup& group) {
  const int64_t lowest = lowest_offset(group);
  return *find_if(group, [&](const Member& member) { return member.offset == lowest; })->access;
}

}  // namespace kiln::widening
