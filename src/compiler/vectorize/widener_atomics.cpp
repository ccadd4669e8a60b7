#include "compiler/vectorize/widener_atomics.h"

#include <llvm/Transforms/Utils/LowerAtomic.h>

namespace kiln::widening {

void Atomics::widen(AtomicRMWInst& atomic, IRBuilder<>& builder) {
  GuardedAddress target = guarded_address_of(atomic);
  if (!target.allowed) return widen_unguarded(atomic, builder);
  if (is_striped_range(atomic, target.address) && checks_.has_range_guard(target, sizeof(float)))
    return update_guarded_range(atomic, target, builder);
  atomic.setOperand(AtomicRMWInst::getPointerOperandIndex(), target.address);
  Value* all = lanes_.mask();
  lanes_.set_mask(lanes_.narrowed(all, lanes_.vector(target.allowed, builder), builder));
  auto some = [&]() -> Values {
    widen_unguarded(atomic, builder);
    return {};
  };
  lanes_.create_if_else({lanes_.any(lanes_.mask(), builder), "some", "none", false}, builder, some,
                        [] { return Values(); });
  lanes_.set_mask(all);
}

// Whether consecutive floats are updated that other threads may update, too, and the old values are unused.
bool Atomics::is_striped_range(AtomicRMWInst& atomic, Value* pointer) {
  Value* exclusive = atomic_memory_.is_exclusive(atomic);
  return exclusive && !isa<Constant>(exclusive) && is_striped_update(atomic) && lanes_.is_divergent(pointer) &&
         strides_.element_stride(pointer, sizeof(float)) == 1 && !only_lane(lanes_.mask());
}

// For memory that no other thread modifies.
Value* Atomics::update_exclusive(AtomicRMWInst& atomic, Value* address, IRBuilder<>& builder) {
  Value* operand = lanes_.vector(atomic.getValOperand(), builder);
  Type* type = operand->getType();
  bool are_all = is_all(lanes_.mask());
  Value* old_value =
      are_all ? static_cast<Value*>(builder.CreateAlignedLoad(type, address, atomic.getAlign()))
              : builder.CreateMaskedLoad(type, address, atomic.getAlign(), lanes_.mask(), Constant::getNullValue(type));
  Value* new_value = buildAtomicRMWValue(atomic.getOperation(), builder, old_value, operand);
  if (are_all)
    builder.CreateAlignedStore(new_value, address, atomic.getAlign());
  else
    builder.CreateMaskedStore(new_value, address, atomic.getAlign(), lanes_.mask());
  return old_value;
}

// Exclusive if the guard allows the whole range.
void Atomics::update_guarded_range(AtomicRMWInst& atomic, const GuardedAddress& target, IRBuilder<>& builder) {
  auto* comparison = cast<ICmpInst>(target.allowed);
  Value* address = lane_scalars_.at_lane(target.address, 0, builder);
  RangeGuard guard{lane_scalars_.at_lane(comparison->getOperand(0), 0, builder),
                   lanes_.scalar(comparison->getOperand(1))};
  Value* is_inside =
      builder.CreateICmpULT(guard.offset, checks_.reduced_limit(guard.limit, (kLanes - 1) * sizeof(float)));
  auto update_all = [&]() -> Values {
    update_exclusive(atomic, address, builder);
    return {};
  };
  auto update_lanes = [&]() -> Values {
    update_shared_range(atomic, address, guard, builder);
    return {};
  };
  // Which side is likely depends on the launch.
  lanes_.create_if_else(
      {builder.CreateAnd(is_inside, lanes_.scalar(atomic_memory_.is_exclusive(atomic))), "row", "lanes", false},
      builder, update_all, update_lanes);
}

namespace {

// The neutral element of an integer operation whose result does not depend on the order.
std::optional<APInt> neutral(AtomicRMWInst::BinOp operation, unsigned width) {
  switch (operation) {
    case AtomicRMWInst::Add:
    case AtomicRMWInst::Sub:
    case AtomicRMWInst::Or:
    case AtomicRMWInst::Xor:
    case AtomicRMWInst::UMax: return APInt::getZero(width);
    case AtomicRMWInst::And:
    case AtomicRMWInst::UMin: return APInt::getAllOnes(width);
    case AtomicRMWInst::Max: return APInt::getSignedMinValue(width);
    case AtomicRMWInst::Min: return APInt::getSignedMaxValue(width);
    default: return std::nullopt;
  }
}

bool is_sum(AtomicRMWInst::BinOp operation) {
  return operation == AtomicRMWInst::Add || operation == AtomicRMWInst::Sub;
}

// Combines the active lanes' operands: one operation, which has a neutral element, then has the effect of all of them.
// `operand` is a uniform number or a vector.
Value* combined(AtomicRMWInst::BinOp operation, Value* operand, Value* mask, IRBuilder<>& builder) {
  Type* type = operand->getType()->getScalarType();
  if (!operand->getType()->isVectorTy()) {
    if (!is_sum(operation) && operation != AtomicRMWInst::Xor) return operand;
    Value* lanes = builder.CreateUnaryIntrinsic(Intrinsic::ctpop, builder.CreateBitCast(mask, builder.getInt32Ty()));
    Value* count = builder.CreateZExtOrTrunc(lanes, type);
    if (!is_sum(operation)) count = builder.CreateAnd(count, ConstantInt::get(type, 1));
    return builder.CreateMul(operand, count);
  }
  Constant* neutral_operand = ConstantInt::get(operand->getType(), *neutral(operation, type->getIntegerBitWidth()));
  Value* numbers = builder.CreateSelect(mask, operand, neutral_operand);
  switch (operation) {
    case AtomicRMWInst::And: return builder.CreateAndReduce(numbers);
    case AtomicRMWInst::Or: return builder.CreateOrReduce(numbers);
    case AtomicRMWInst::Xor: return builder.CreateXorReduce(numbers);
    case AtomicRMWInst::Max: return builder.CreateIntMaxReduce(numbers, /*IsSigned=*/true);
    case AtomicRMWInst::Min: return builder.CreateIntMinReduce(numbers, /*IsSigned=*/true);
    case AtomicRMWInst::UMax: return builder.CreateIntMaxReduce(numbers, /*IsSigned=*/false);
    case AtomicRMWInst::UMin: return builder.CreateIntMinReduce(numbers, /*IsSigned=*/false);
    default: return builder.CreateAddReduce(numbers);
  }
}

}  // namespace

// Lanes that update one address, such as a counter, become one operation if their order does not matter. The old value
// of each is what it would have found had the lanes run one after the other.
bool Atomics::combine_lanes(AtomicRMWInst& atomic, IRBuilder<>& builder) {
  if (lanes_.is_divergent(atomic.getPointerOperand()) || only_lane(lanes_.mask())) return false;
  if (!atomic.getType()->isIntegerTy(32) && !atomic.getType()->isIntegerTy(64)) return false;
  if (!neutral(atomic.getOperation(), atomic.getType()->getIntegerBitWidth())) return false;
  if (!atomic.use_empty() && (!is_sum(atomic.getOperation()) || lanes_.is_divergent(atomic.getValOperand())) &&
      !only_possible_lane(lanes_.mask()))
    return false;
  auto some = [&] { return emit_combined(atomic, builder); };
  Constant* zeros = Constant::getNullValue(vector_of(atomic.getType()));
  lanes_.set_vector(&atomic, is_all(lanes_.mask())
                                 ? some()[0]
                                 : lanes_.create_if_else({lanes_.any(lanes_.mask(), builder), "some", "none", false},
                                                         builder, some, [&] { return Values{zeros}; })[0]);
  return true;
}

Values Atomics::emit_combined(AtomicRMWInst& atomic, IRBuilder<>& builder) {
  Value* own = atomic.getValOperand();
  const bool is_uniform = !lanes_.is_divergent(own);
  Value* operand = is_uniform ? lanes_.scalar(own) : lanes_.vector(own, builder);
  // Threads often choose one of them for an atomic, and share what it found.
  const std::optional<unsigned> only = only_possible_lane(lanes_.mask());
  Value* all = !only        ? combined(atomic.getOperation(), operand, lanes_.mask(), builder)
               : is_uniform ? operand
                            : builder.CreateExtractElement(operand, *only);
  Value* old_value =
      atomic_memory_.insert_scalar(atomic, *with_operands(atomic, {lanes_.scalar(atomic.getPointerOperand()), all}),
                                   /*may_be_exclusive=*/true, builder);
  Value* old_values = builder.CreateVectorSplat(kLanes, old_value);
  if (atomic.use_empty() || only) return {old_values};
  SmallVector<uint32_t, kLanes> below;
  for (unsigned lane = 0; lane < kLanes; ++lane) below.push_back((uint32_t{1} << lane) - 1);
  Value* lanes = builder.CreateVectorSplat(kLanes, lanes_.mask_bits(builder));
  Value* count = builder.CreateUnaryIntrinsic(
      Intrinsic::ctpop, builder.CreateAnd(lanes, ConstantDataVector::get(lanes_.context(), below)));
  Value* earlier =
      builder.CreateMul(builder.CreateZExt(count, old_values->getType()), builder.CreateVectorSplat(kLanes, operand));
  return {atomic.getOperation() == AtomicRMWInst::Add ? builder.CreateAdd(old_values, earlier)
                                                      : builder.CreateSub(old_values, earlier)};
}

void Atomics::widen_unguarded(AtomicRMWInst& atomic, IRBuilder<>& builder) {
  if (combine_lanes(atomic, builder)) return;
  Value *exclusive = atomic_memory_.is_exclusive(atomic), *pointer = atomic.getPointerOperand();
  uint64_t bytes = layout_.getTypeStoreSize(atomic.getType());
  if (!exclusive || !is_word(bytes) || !lanes_.is_divergent(pointer) || strides_.element_stride(pointer, bytes) != 1 ||
      only_lane(lanes_.mask()))
    return lane_loops_.for_each_lane(atomic, builder);
  // Consecutive lanes have distinct addresses.
  bool is_striped = is_striped_range(atomic, pointer);
  Type* type = lanes_.vector(atomic.getValOperand(), builder)->getType();
  auto vectorized = [&](Value* address) -> Values { return {update_exclusive(atomic, address, builder)}; };
  auto scalarized = [&]() -> Values {
    if (is_striped) {
      update_shared_checked(atomic, builder);
      return {Constant::getNullValue(type)};
    }
    lane_loops_.for_each_lane(atomic, builder);
    return {lanes_.known_vector(&atomic)};
  };
  lanes_.set_vector(&atomic,
                    checks_.emit_by_shape(pointer, isa<Constant>(exclusive) ? nullptr : exclusive,
                                          {bytes, bytes * (kLanes - 1), true}, builder, vectorized, scalarized)[0]);
}

void Atomics::update_shared_range(AtomicRMWInst& atomic, Value* address, const std::optional<RangeGuard>& guard,
                                  IRBuilder<>& builder) {
  Value* operand = lanes_.vector(atomic.getValOperand(), builder);
  AllocaInst* operands = scratch_.acquire(operand->getType());
  builder.CreateStore(operand, operands);
  Value* lanes = lanes_.mask_bits(builder);
  update_striped_range(atomic, address, operands, lanes, guard, atomic_memory_.updated_array(atomic), builder);
  scratch_.release(operands);
}

// Checks at run time whether the lanes are consecutive.
void Atomics::update_shared_checked(AtomicRMWInst& atomic, IRBuilder<>& builder) {
  std::optional<RangeCheck> check = checks_.check_range(atomic.getPointerOperand(), nullptr,
                                                        {sizeof(float), sizeof(float) * (kLanes - 1), true}, builder);
  auto vectorized = [&]() -> Values {
    update_shared_range(atomic, check->base, std::nullopt, builder);
    return {};
  };
  if (const auto* known = dyn_cast<ConstantInt>(check->condition); known && known->isOne()) {
    vectorized();
    return;
  }
  // An exclusive launch comes here only if its lanes are not consecutive, which is rare.
  auto scalarized = [&]() -> Values {
    lane_loops_.for_each_lane(atomic, builder, /*may_be_exclusive=*/false);
    return {};
  };
  lanes_.create_if_else({check->condition, "row", "lanes", false}, builder, vectorized, scalarized);
}

}  // namespace kiln::widening
