// Atomic operations.
//
// A launch that one thread of the process runs, and the memory of a threadgroup, need none: a row of them is one of
// vectors. Otherwise a row of floats is changed by a function that knows what is quickest (targets/cpu/row_updates.h),
// which is a lock for the whole row where a launch's code does nothing else with an output. Where lanes of such a row
// turn out to be by themselves, each takes the lock, too.
#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/LowerAtomic.h>

#include <cstddef>

#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/invariant_loads.h"
#include "compiler/ir/sections.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/ir/striped_atomics.h"
#include "compiler/vectorize/widener.h"
#include "core/cpu_image.h"

namespace kiln::widening {

// An atomic may be a load and a store where the launch is alone.
Value* Widener::make_one(Instruction& instruction, Instruction& one, bool may_be_alone, IRBuilder<>& builder) {
  auto* atomic = dyn_cast<AtomicRMWInst>(&one);
  Value* alone = atomic && may_be_alone ? is_alone(instruction) : nullptr;
  auto make_locked = [&]() -> Values {
    Value* begin = atomic ? updated_arrays_.lookup(&instruction) : nullptr;
    if (!begin) return {builder.Insert(&one)};
    AllocaInst* operand = scratch(atomic->getType());
    builder.CreateStore(atomic->getValOperand(), operand);
    update_striped_range(*atomic, atomic->getPointerOperand(), operand, builder.getInt32(1), std::nullopt,
                         updated_array(instruction), builder);
    unused_scratch_[operand->getAllocatedType()].push_back(operand);
    Value* nothing = Constant::getNullValue(atomic->getType());
    one.deleteValue();
    return {nothing};
  };
  if (!alone) return make_locked()[0];
  auto make_plain = [&]() -> Values {
    Value* before = builder.CreateAlignedLoad(atomic->getType(), atomic->getPointerOperand(), atomic->getAlign());
    Value* after = buildAtomicRMWValue(atomic->getOperation(), builder, before, atomic->getValOperand());
    builder.CreateAlignedStore(after, atomic->getPointerOperand(), atomic->getAlign());
    return {before};
  };
  if (isa<Constant>(alone)) {
    Value* before = make_plain()[0];
    one.deleteValue();
    return before;
  }
  return either({scalar(alone), "plain", "atomic", false}, builder, make_plain, make_locked)[0];
}

// In the code of one thread, before all of it.
void Widener::check_exclusive(uint64_t offset, function_ref<bool(uint64_t)> is_output) {
  if (offset == 0 || none_of(instructions(from_), [](const Instruction& i) { return isa<AtomicRMWInst>(i); })) return;
  IRBuilder<> builder(&*from_.getEntryBlock().getFirstInsertionPt());
  alone_ = builder.CreateIsNotNull(load_invariant(builder, builder.getInt32Ty(), from_.getArg(0), offset));
  find_updated_arrays(is_output);
}

namespace {

// Whether nothing comes of an address's bits but comparisons, as of a guard's.
bool is_only_compared(const Value& bits) {
  return all_of(bits.users(), [](const User* user) {
    return isa<ICmpInst>(user) || (isa<BinaryOperator, ZExtInst, TruncInst>(user) && is_only_compared(*user));
  });
}

// All that is done with an array: updates by functions for rows, and comparisons of addresses. False for anything else.
bool collect_updates(const Value& pointer, SmallVectorImpl<AtomicRMWInst*>& updates) {
  return all_of(pointer.uses(), [&](const Use& use) {
    auto* user = cast<Instruction>(use.getUser());
    if (isa<ICmpInst>(user) || (isa<PtrToIntInst>(user) && is_only_compared(*user))) return true;
    if (isa<GetElementPtrInst>(user)) return collect_updates(*user, updates);
    if (auto* choice = dyn_cast<SelectInst>(user))
      return is_sink(choice->getFalseValue()) && collect_updates(*choice, updates);
    auto* atomic = dyn_cast<AtomicRMWInst>(user);
    if (!atomic || use.getOperandNo() != AtomicRMWInst::getPointerOperandIndex() || !is_striped_update(*atomic) ||
        atomic->getOrdering() != AtomicOrdering::Monotonic)
      return false;
    updates.push_back(atomic);
    return true;
  });
}

}  // namespace

// Of outputs alone: what is known of a launch is that nobody else uses those.
void Widener::find_updated_arrays(function_ref<bool(uint64_t)> is_output) {
  if (any_of(instructions(from_), [](const Instruction& i) { return isa<IntToPtrInst>(i); })) return;
  auto is_arguments = [&](const Value* value) {
    const auto* load = dyn_cast<LoadInst>(value);
    APInt offset(64, 0);
    return load && load->getType()->isPointerTy() &&
           load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout_, offset, true) == from_.getArg(0) &&
           offset == offsetof(CpuLaunch, arguments);
  };
  MapVector<uint64_t, SmallVector<LoadInst*>> arrays;
  for (Instruction& instruction : instructions(from_)) {
    auto* load = dyn_cast<LoadInst>(&instruction);
    if (!load || !load->getType()->isPointerTy()) continue;
    APInt offset(64, 0);
    const Value* base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout_, offset, true);
    SmallVector<const Value*> objects;
    getUnderlyingObjects(base, objects);
    if (is_arguments(base))
      arrays[offset.getZExtValue()].push_back(load);
    else if (any_of(objects, is_arguments))
      return;  // one of several arrays
  }
  for (auto& [field, begins] : arrays) {
    if (!is_output || !is_output(field / sizeof(CpuArgument))) continue;
    SmallVector<std::pair<AtomicRMWInst*, LoadInst*>> all;
    bool is_known = all_of(begins, [&](LoadInst* begin) {
      SmallVector<AtomicRMWInst*> updates;
      bool has_others = !collect_updates(*begin, updates);
      for (AtomicRMWInst* update : updates) all.push_back({update, begin});
      return !has_others;
    });
    // A single lane's atomic is quicker than a lock for it.
    is_known = is_known && all_of(all, [&](auto& one) {
                 Value* pointer = place_of(*one.first).address;
                 return is_divergent(pointer) && step_of(pointer, sizeof(float)) == 1;
               });
    if (is_known) updated_arrays_.insert(all.begin(), all.end());
  }
}

std::optional<UpdatedArray> Widener::updated_array(const Instruction& update) {
  Value* begin = updated_arrays_.lookup(&update);
  if (!begin) return std::nullopt;
  return UpdatedArray{scalar(from_.getArg(0)), scalar(begin)};
}

// Null where it must be an atomic in any case. The threads of a threadgroup are all run by one of the process.
Value* Widener::is_alone(Instruction& instruction) {
  auto& atomic = cast<AtomicRMWInst>(instruction);
  const auto* variable = dyn_cast<GlobalVariable>(getUnderlyingObject(place_of(atomic).address));
  if (variable && variable->getSection() == kThreadgroupSection) return ConstantInt::getTrue(context_);
  return alone_;
}

void Widener::widen_atomic(AtomicRMWInst& atomic, IRBuilder<>& builder) {
  Guarded place = place_of(atomic);
  if (!place.allowed) return widen_allowed_atomic(atomic, builder);
  if (is_updated_range(atomic, place.address) && is_limited_row(place, sizeof(float)))
    return update_limited_row(atomic, place, builder);
  atomic.setOperand(AtomicRMWInst::getPointerOperandIndex(), place.address);
  Value* all = std::exchange(mask_, narrowed(mask_, vector(place.allowed, builder), builder));
  auto some = [&]() -> Values {
    widen_allowed_atomic(atomic, builder);
    return {};
  };
  either({any(mask_, builder), "some", "none", false}, builder, some, [] { return Values(); });
  mask_ = all;
}

// Whether floats of a row are changed, of which nobody gets what was there, and which others may change, too.
bool Widener::is_updated_range(AtomicRMWInst& atomic, Value* pointer) {
  Value* alone = is_alone(atomic);
  return alone && !isa<Constant>(alone) && is_striped_update(atomic) && is_divergent(pointer) &&
         step_of(pointer, sizeof(float)) == 1 && !only_lane(mask_);
}

// Nobody else changes what is there.
Value* Widener::update_alone(AtomicRMWInst& atomic, Value* address, IRBuilder<>& builder) {
  Value* operand = vector(atomic.getValOperand(), builder);
  Type* type = operand->getType();
  bool are_all = is_all(mask_);
  Value* before = are_all
                      ? static_cast<Value*>(builder.CreateAlignedLoad(type, address, atomic.getAlign()))
                      : builder.CreateMaskedLoad(type, address, atomic.getAlign(), mask_, Constant::getNullValue(type));
  Value* after = buildAtomicRMWValue(atomic.getOperation(), builder, before, operand);
  if (are_all)
    builder.CreateAlignedStore(after, address, atomic.getAlign());
  else
    builder.CreateMaskedStore(after, address, atomic.getAlign(), mask_);
  return before;
}

// Alone if the guard lets all of the row through.
void Widener::update_limited_row(AtomicRMWInst& atomic, const Guarded& place, IRBuilder<>& builder) {
  auto* comparison = cast<ICmpInst>(place.allowed);
  Value* address = at_lane(place.address, 0, builder);
  RangeGuard guard{at_lane(comparison->getOperand(0), 0, builder), scalar(comparison->getOperand(1))};
  Value* is_inside = builder.CreateICmpULT(guard.offset, less(guard.limit, (kLanes - 1) * sizeof(float)));
  auto row = [&]() -> Values {
    update_alone(atomic, address, builder);
    return {};
  };
  auto lanes = [&]() -> Values {
    update_shared_row(atomic, address, guard, builder);
    return {};
  };
  // Which of both is usual is the launch's to say.
  either({builder.CreateAnd(is_inside, scalar(is_alone(atomic))), "row", "lanes", false}, builder, row, lanes);
}

namespace {

// What changes nothing, of operations on whole numbers of which any order gives the same.
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

// What the lanes that take part have together, so that one operation that has a neutral element does what theirs would.
// `operand`: a number that all have, or a vector.
Value* combined(AtomicRMWInst::BinOp operation, Value* operand, Value* mask, IRBuilder<>& builder) {
  Type* type = operand->getType()->getScalarType();
  if (!operand->getType()->isVectorTy()) {
    if (!is_sum(operation) && operation != AtomicRMWInst::Xor) return operand;
    Value* lanes = builder.CreateUnaryIntrinsic(Intrinsic::ctpop, builder.CreateBitCast(mask, builder.getInt32Ty()));
    Value* count = builder.CreateZExtOrTrunc(lanes, type);
    if (!is_sum(operation)) count = builder.CreateAnd(count, ConstantInt::get(type, 1));
    return builder.CreateMul(operand, count);
  }
  Constant* nothing = ConstantInt::get(operand->getType(), *neutral(operation, type->getIntegerBitWidth()));
  Value* numbers = builder.CreateSelect(mask, operand, nothing);
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

// Lanes of one place, as those of a counter, are one operation, where any order of them gives the same. Of what was
// there before, each gets what it would have found if lanes came one after the other.
bool Widener::combine_lanes(AtomicRMWInst& atomic, IRBuilder<>& builder) {
  if (is_divergent(atomic.getPointerOperand()) || only_lane(mask_)) return false;
  if (!atomic.getType()->isIntegerTy(32) && !atomic.getType()->isIntegerTy(64)) return false;
  if (!neutral(atomic.getOperation(), atomic.getType()->getIntegerBitWidth())) return false;
  if (!atomic.use_empty() && (!is_sum(atomic.getOperation()) || is_divergent(atomic.getValOperand()))) return false;
  auto some = [&] { return made_together(atomic, builder); };
  Constant* nothing = Constant::getNullValue(vector_of(atomic.getType()));
  vectors_[&atomic] = is_all(mask_) ? some()[0]
                                    : either({any(mask_, builder), "some", "none", false}, builder, some,
                                             [&] { return Values{nothing}; })[0];
  return true;
}

Widener::Values Widener::made_together(AtomicRMWInst& atomic, IRBuilder<>& builder) {
  Value* own = atomic.getValOperand();
  const bool is_same = !is_divergent(own);
  Value* operand = is_same ? scalar(own) : vector(own, builder);
  Value* all = combined(atomic.getOperation(), operand, mask_, builder);
  Value* before = make_one(atomic, *with_operands(atomic, {scalar(atomic.getPointerOperand()), all}),
                           /*may_be_alone=*/true, builder);
  Value* befores = builder.CreateVectorSplat(kLanes, before);
  if (atomic.use_empty()) return {befores};
  SmallVector<uint32_t, kLanes> below;
  for (unsigned lane = 0; lane < kLanes; ++lane) below.push_back((uint32_t{1} << lane) - 1);
  Value* lanes = builder.CreateVectorSplat(kLanes, builder.CreateBitCast(mask_, builder.getInt32Ty()));
  Value* count = builder.CreateUnaryIntrinsic(Intrinsic::ctpop,
                                              builder.CreateAnd(lanes, ConstantDataVector::get(context_, below)));
  Value* earlier =
      builder.CreateMul(builder.CreateZExt(count, befores->getType()), builder.CreateVectorSplat(kLanes, operand));
  return {atomic.getOperation() == AtomicRMWInst::Add ? builder.CreateAdd(befores, earlier)
                                                      : builder.CreateSub(befores, earlier)};
}

void Widener::widen_allowed_atomic(AtomicRMWInst& atomic, IRBuilder<>& builder) {
  if (combine_lanes(atomic, builder)) return;
  Value *alone = is_alone(atomic), *pointer = atomic.getPointerOperand();
  uint64_t bytes = layout_.getTypeStoreSize(atomic.getType());
  if (!alone || !is_word(bytes) || !is_divergent(pointer) || step_of(pointer, bytes) != 1 || only_lane(mask_))
    return each_lane(atomic, builder);
  // A row's places are different ones.
  bool is_updated = is_updated_range(atomic, pointer);
  Type* type = vector(atomic.getValOperand(), builder)->getType();
  auto together = [&](Value* address) -> Values { return {update_alone(atomic, address, builder)}; };
  auto apart = [&]() -> Values {
    if (is_updated) {
      update_shared(atomic, builder);
      return {Constant::getNullValue(type)};
    }
    each_lane(atomic, builder);
    return {vectors_[&atomic]};
  };
  vectors_[&atomic] = by_shape(pointer, isa<Constant>(alone) ? nullptr : alone, {bytes, bytes * (kLanes - 1), true},
                               builder, together, apart)[0];
}

void Widener::update_shared_row(AtomicRMWInst& atomic, Value* address, const std::optional<RangeGuard>& guard,
                                IRBuilder<>& builder) {
  Value* operand = vector(atomic.getValOperand(), builder);
  AllocaInst* operands = scratch(operand->getType());
  builder.CreateStore(operand, operands);
  Value* lanes = builder.CreateBitCast(mask_, builder.getInt32Ty());
  update_striped_range(atomic, address, operands, lanes, guard, updated_array(atomic), builder);
  unused_scratch_[operand->getType()].push_back(operands);
}

// Where it is a row, which is asked when the code runs.
void Widener::update_shared(AtomicRMWInst& atomic, IRBuilder<>& builder) {
  std::optional<Asked> asked =
      prefetch_range(atomic.getPointerOperand(), nullptr, {sizeof(float), sizeof(float) * (kLanes - 1), true}, builder);
  auto together = [&]() -> Values {
    update_shared_row(atomic, asked->first, std::nullopt, builder);
    return {};
  };
  if (const auto* known = dyn_cast<ConstantInt>(asked->is_row); known && known->isOne()) {
    together();
    return;
  }
  // A launch that is alone comes here with what is no row, which is rare.
  auto apart = [&]() -> Values {
    each_lane(atomic, builder, /*may_be_alone=*/false);
    return {};
  };
  either({asked->is_row, "row", "lanes", false}, builder, together, apart);
}

}  // namespace kiln::widening
