#include "compiler/vectorize/widener_access_groups.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/PatternMatch.h>

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

std::optional<AccessIndex> index_of(Value* address, Value* offset, uint64_t bytes, const DataLayout& layout) {
  using namespace PatternMatch;
  auto* element = dyn_cast<GetElementPtrInst>(address);
  if (!element || element->getNumIndices() != 1 || layout.getTypeAllocSize(element->getSourceElementType()) != bytes)
    return std::nullopt;
  Value *extended = element->getOperand(1), *number = nullptr;
  if (!match(extended, m_ZExtOrSExt(m_Value(number))) || number->getType()->isIntegerTy(1)) return std::nullopt;
  const bool is_offset = bytes == 1
                             ? offset == extended
                             : match(offset, m_CombineOr(m_Shl(m_Specific(extended), m_SpecificInt(Log2_64(bytes))),
                                                         m_Mul(m_Specific(extended), m_SpecificInt(bytes))));
  if (!is_offset) return std::nullopt;
  return AccessIndex{element->getPointerOperand(), number, isa<SExtInst>(extended)};
}

std::optional<int64_t> distance_without_wrapping(const AccessIndex& from, const AccessIndex& to,
                                                 ScalarEvolution& evolution) {
  if (from.base != to.base || from.is_signed != to.is_signed || from.number->getType() != to.number->getType())
    return std::nullopt;
  return distance(from.number, to.number, 1, evolution);
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
