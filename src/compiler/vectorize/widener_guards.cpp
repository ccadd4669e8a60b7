#include "compiler/vectorize/widener_guards.h"

#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/guard_zeros.h"

namespace kiln::widening {

std::optional<GuardedAddress> guarded(Value* pointer) {
  auto* select = dyn_cast<SelectInst>(pointer);
  if (!select || !is_zeros(select->getFalseValue())) return std::nullopt;
  return GuardedAddress{select->getCondition(), select->getTrueValue()};
}

GuardedAddress guarded_address_of(Instruction& access) {
  auto* atomic = dyn_cast<AtomicRMWInst>(&access);
  Value* pointer = atomic ? atomic->getPointerOperand() : getLoadStorePointerOperand(&access);
  auto* select = dyn_cast<SelectInst>(pointer);
  if (select && (isa<LoadInst>(access) ? is_zeros(select->getFalseValue()) : is_sink(select->getFalseValue())))
    return {select->getCondition(), select->getTrueValue()};
  return {nullptr, pointer};
}

std::optional<LaneGuard> lane_guard_of(Value* allowed, const StructuredFlow& flow) {
  auto* comparison = dyn_cast_or_null<ICmpInst>(allowed);
  if (!comparison) return std::nullopt;
  const bool is_swapped = comparison->getPredicate() == ICmpInst::ICMP_UGT;
  if (!is_swapped && comparison->getPredicate() != ICmpInst::ICMP_ULT) return std::nullopt;
  LaneGuard guard{comparison->getOperand(is_swapped ? 1 : 0), comparison->getOperand(is_swapped ? 0 : 1)};
  if (!guard.offset->getType()->isIntegerTy(64) || flow.is_divergent(guard.limit)) return std::nullopt;
  return guard;
}

}  // namespace kiln::widening
