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

namespace {

// factor * extension of a number of at most 32 bits
struct ExtendedTerm {
  int64_t factor;
  const SCEVCastExpr* extension;
};

std::optional<ExtendedTerm> extended_term_of(const SCEV* term) {
  int64_t factor = 1;
  if (const auto* product = dyn_cast<SCEVMulExpr>(term)) {
    const auto* by = dyn_cast<SCEVConstant>(product->getOperand(0));
    if (product->getNumOperands() != 2 || !by || by->getAPInt().getSignificantBits() > 17) return std::nullopt;
    factor = by->getAPInt().getSExtValue();
    term = product->getOperand(1);
  }
  if (!isa<SCEVZeroExtendExpr, SCEVSignExtendExpr>(term)) return std::nullopt;
  const auto* extension = cast<SCEVCastExpr>(term);
  if (extension->getOperand()->getType()->getScalarSizeInBits() > 32) return std::nullopt;
  return ExtendedTerm{factor, extension};
}

}  // namespace

std::optional<UnwrappedDistance> distance_unless_wrapped(Value* from, Value* to, uint64_t bytes,
                                                         ScalarEvolution& evolution) {
  const auto* sum = dyn_cast<SCEVAddExpr>(evolution.getMinusSCEV(evolution.getSCEV(to), evolution.getSCEV(from)));
  if (!sum) return std::nullopt;
  ArrayRef<const SCEV*> terms = sum->operands();
  int64_t distance = 0;
  if (const auto* constant = dyn_cast<SCEVConstant>(terms[0])) {
    if (constant->getAPInt().getSignificantBits() > 32) return std::nullopt;
    distance = constant->getAPInt().getSExtValue();
    terms = terms.drop_front();
  }
  if (terms.size() != 2) return std::nullopt;
  std::optional<ExtendedTerm> one = extended_term_of(terms[0]), other = extended_term_of(terms[1]);
  if (!one || !other || one->factor != -other->factor ||
      one->extension->getSCEVType() != other->extension->getSCEVType())
    return std::nullopt;
  const SCEV *number = one->extension->getOperand(), *subtracted = other->extension->getOperand();
  if (number->getType() != subtracted->getType()) return std::nullopt;
  const auto* step = dyn_cast<SCEVConstant>(evolution.getMinusSCEV(number, subtracted));
  if (!step || step->getAPInt().getSignificantBits() > 16) return std::nullopt;
  distance += one->factor * step->getAPInt().getSExtValue();
  if (distance % static_cast<int64_t>(bytes) != 0) return std::nullopt;
  const unsigned bits = number->getType()->getScalarSizeInBits() - isa<SCEVSignExtendExpr>(one->extension);
  return UnwrappedDistance{distance / static_cast<int64_t>(bytes), static_cast<uint64_t>(std::abs(one->factor))
                                                                       << bits};
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

static bool is_lower(const Member& one, const Member& other) { return one.offset < other.offset; }

const Member& lowest_member(const AccessGroup& group) {
  return *std::min_element(group.begin(), group.end(), is_lower);
}

bool may_wrap(const AccessGroup& group) {
  return any_of(group, [](const Member& member) { return member.may_wrap; });
}

}  // namespace kiln::widening
