#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/Support/KnownBits.h>

#include <map>

#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/remarks.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/vectorize/tail_loads.h"
#include "compiler/vectorize/widener.h"

namespace kiln::widening {

// The lanes' variables are consecutive in memory, but for interleaved ones (vectorize/interleaved_variables.h).
void Widener::widen_variable(AllocaInst& variable) {
  if (!variable.isStaticAlloca() || variable.isArrayAllocation()) refuse("a variable of dynamic size");
  IRBuilder<> builder(&lanes_.entry());
  if (!lanes_.is_divergent(&variable)) {
    // Interleaved already.
    lanes_.set_scalar(&variable, builder.Insert(variable.clone()));
    return;
  }
  uint64_t size = alignTo(layout_.getTypeAllocSize(variable.getAllocatedType()), variable.getAlign());
  AllocaInst* all = builder.CreateAlloca(ArrayType::get(builder.getInt8Ty(), size * kLanes));
  all->setAlignment(std::max(variable.getAlign(), Align(64)));
  Value* offsets = builder.CreateMul(lane_numbers(builder.getInt64Ty()),
                                     ConstantVector::getSplat(ElementCount::getFixed(kLanes), builder.getInt64(size)));
  lanes_.set_vector(&variable, builder.CreateGEP(builder.getInt8Ty(), all, offsets));
}

// Whether a function shared by the whole module loads what the guard allows only in part.
bool Widener::uses_tail_load(const LoadInst& load, const GuardedAddress& target) {
  Type* type = load.getType();
  uint64_t bytes = layout_.getTypeStoreSize(type);
  return !has_barriers_ && !type->isIntegerTy(1) && bytes == layout_.getTypeAllocSize(type) &&
         checks_.has_range_guard(target, bytes);
}

void Widener::widen_load(LoadInst& load, IRBuilder<>& builder) {
  if (auto tile = tiles_.find(&load); tile != tiles_.end()) return load_tile(tile->second, builder);
  if (auto shared = shared_check_of_.find(&load); shared != shared_check_of_.end())
    return load_with_shared_check(load, shared_checks_[shared->second], builder);
  widen_single_load(load, builder);
}

void Widener::widen_single_load(LoadInst& load, IRBuilder<>& builder) {
  if (!load.getType()->isIntegerTy(1) && lanes_.is_divergent(load.getPointerOperand())) {
    Value *pointer = load.getPointerOperand(), *allowed = nullptr;
    if (auto guard = guarded(pointer)) {
      pointer = guard->address;
      allowed = guard->allowed;
    }
    if (select_address(load, pointer, allowed, builder)) return;
    uint64_t bytes = layout_.getTypeStoreSize(load.getType());
    uint64_t step = strides_.element_stride(pointer, bytes);
    auto vectorized = [&](Value* address) -> Values {
      if (step > 1) return strided_.load_strided(load, address, step, {0}, builder);
      Value* loaded = strided_.load_consecutive(load, address, builder);
      // It is at the point where the lanes' own loads would be.
      if (auto* full_load = dyn_cast<LoadInst>(loaded)) full_load->copyMetadata(load, {LLVMContext::MD_invariant_load});
      return {loaded};
    };
    auto scalarized = [&]() -> Values {
      widen_load_scalarized(load, builder);
      return {lanes_.known_vector(&load)};
    };
    if (auto group = groups_.find(&load); group != groups_.end()) return load_group(group->second, builder);
    if (lane_loops_.access_few_lanes(load, builder)) return;
    if (step != 0) {
      AccessShape shape{bytes, (step * kLanes - 1) * bytes, step == 1};
      shape.slow_path_checks = uses_tail_load(load, {allowed, pointer});
      lanes_.set_vector(&load, checks_.emit_by_shape(pointer, allowed, shape, builder, vectorized, scalarized)[0]);
      return;
    }
    if (load_pattern(load, pointer, allowed, builder)) return;
    note_scattered(load, pointer);
    if (load_by_run_time_shape(load, builder)) return;
  }
  widen_load_scalarized(load, builder);
}

void Widener::widen_load_scalarized(LoadInst& load, IRBuilder<>& builder) {
  Value* pointer = load.getPointerOperand();
  if (!lanes_.is_divergent(pointer)) {
    // The address is uniform, but a loop makes the value divergent.
    Value* loaded = builder.Insert(with_operands(load, lanes_.scalar(pointer)));
    lanes_.set_vector(&load, builder.CreateVectorSplat(kLanes, loaded));
    return;
  }
  auto [allowed, address] = guarded_address_of(load);
  if (uses_tail_load(load, {allowed, address})) {
    auto* comparison = cast<ICmpInst>(allowed);
    lanes_.set_vector(&load, load_tail(*load.getType(), lane_scalars_.at_lane(address, 0, builder),
                                       lane_scalars_.at_lane(comparison->getOperand(0), 0, builder),
                                       lanes_.scalar(comparison->getOperand(1)), builder));
    return;
  }
  bool is_masked =
      !load.getType()->isIntegerTy(1) && checks_.is_masked_access(address, layout_.getTypeStoreSize(load.getType()));
  if (!is_masked && !lanes_.has_gathers(load.getType())) {
    const uint64_t bytes = layout_.getTypeStoreSize(load.getType());
    const bool is_beside_border = !load.getType()->isIntegerTy(1) && lanes_.can_mask(bytes) &&
                                  isa_.has_mask_registers && strides_.element_stride(address, bytes) == 1 &&
                                  strides_.has_piece(address);
    return is_beside_border ? load_beside_border(load, builder) : lane_loops_.for_each_lane(load, builder);
  }
  Value* mask = allowed ? lanes_.narrowed(lanes_.mask(), lanes_.vector(allowed, builder), builder) : lanes_.mask();
  Type* type = vector_of(load.getType());
  Constant* zero = Constant::getNullValue(type);
  lanes_.set_vector(&load, is_masked ? builder.CreateMaskedLoad(type, lane_scalars_.at_lane(address, 0, builder),
                                                                load.getAlign(), mask, zero)
                                     : builder.CreateMaskedGather(type, lanes_.vector(address, builder),
                                                                  load.getAlign(), mask, zero));
}

// A remark on an access that is none of the widener's vector accesses.
void Widener::note_scattered(const Instruction& access, Value* address) {
  if (!keeps_remarks(from_)) return;
  const bool is_load = isa<LoadInst>(access);
  const std::string_view noun = is_load ? "load" : "store", what = is_load ? "gather" : "scatter";
  const std::string_view how =
      lanes_.has_gathers(getLoadStoreType(const_cast<Instruction*>(&access))) ? "" : " lane by lane";
  if (isa<AllocaInst>(getUnderlyingObject(address)))
    remark("widen", access, what, how,
           ": each thread's private array is an array of its own, and the index is not "
           "known when the kernel is compiled");
  else if (std::optional<int64_t> stride = strides_.stride_of(address))
    remark("widen", access, what, how, ": the ", noun, "s of neighbouring threads are ", *stride, " bytes apart");
  else
    remark("widen", access, what, how, ": the ", noun, "'s stride from thread to thread is not known");
}

void Widener::widen_store(StoreInst& store, IRBuilder<>& builder) {
  if (auto tile = tiles_.find(&store); tile != tiles_.end()) return store_tile(tile->second, builder);
  widen_single_store(store, builder);
}

void Widener::widen_single_store(StoreInst& store, IRBuilder<>& builder) {
  Value* pointer = store.getPointerOperand();
  Value* value = store.getValueOperand();
  if (!lanes_.is_divergent(pointer) && !lanes_.is_divergent(value)) {
    // A block runs only if some lane is active.
    builder.Insert(with_operands(store, {lanes_.scalar(value), lanes_.scalar(pointer)}));
    return;
  }
  if (!lanes_.is_divergent(pointer)) {
    // As if the lanes stored one after the other.
    Value* bits = lanes_.mask_bits(builder);
    Value* last = builder.CreateSub(builder.getInt32(31),
                                    builder.CreateBinaryIntrinsic(Intrinsic::ctlz, bits, builder.getTrue()));
    Value* stored = builder.CreateExtractElement(lanes_.vector(value, builder), last);
    builder.Insert(with_operands(store, {stored, lanes_.scalar(pointer)}));
    return;
  }
  if (deferred_stores_.contains(&store)) return;
  if (auto group = groups_.find(&store); group != groups_.end()) return store_group(group->second, builder);
  auto [allowed, address] = guarded_address_of(store);
  auto scalarized = [&]() -> Values {
    widen_store_scalarized(store, builder);
    return {};
  };
  if (value->getType()->isIntegerTy(1)) {
    scalarized();
    return;
  }
  uint64_t bytes = layout_.getTypeStoreSize(value->getType());
  uint64_t step = strides_.element_stride(address, bytes);
  // A register must reach from one lane's element to the next one's, and what lies between is masked.
  const bool is_served =
      step == 1 || (isPowerOf2_64(step) && step <= lanes_.register_lanes(value->getType()) && lanes_.can_mask(bytes));
  if (lane_loops_.access_few_lanes(store, builder)) return;
  if (!is_served) {
    if (store_pattern(store, address, allowed, builder)) return;
    if (store_compressed(store, address, allowed, builder)) return;
    note_scattered(store, address);
    if (!store_by_run_time_shape(store, builder)) scalarized();
    return;
  }
  Value* lanes = lanes_.vector(value, builder);
  auto vectorized = [&](Value* first) -> Values {
    if (step > 1)
      strided_.store_strided(lanes, first, step, store.getAlign(), builder);
    else if (is_all(lanes_.mask()) || !lanes_.can_mask(bytes))
      builder.CreateAlignedStore(lanes, first, store.getAlign());
    else
      builder.CreateMaskedStore(lanes, first, store.getAlign(), lanes_.mask());
    return {};
  };
  checks_.emit_by_shape(address, allowed, {bytes, step * bytes * (kLanes - 1), true}, builder, vectorized, scalarized);
}

void Widener::widen_store_scalarized(StoreInst& store, IRBuilder<>& builder) {
  Value* value = store.getValueOperand();
  auto [allowed, address] = guarded_address_of(store);
  bool is_masked = !value->getType()->isIntegerTy(1) &&
                   checks_.is_masked_access(address, layout_.getTypeStoreSize(value->getType()));
  if (!is_masked && !lanes_.has_scatters(value->getType())) return lane_loops_.for_each_lane(store, builder);
  Value *mask = allowed ? lanes_.narrowed(lanes_.mask(), lanes_.vector(allowed, builder), builder) : lanes_.mask(),
        *lanes = lanes_.vector(value, builder);
  if (is_masked)
    builder.CreateMaskedStore(lanes, lane_scalars_.at_lane(address, 0, builder), store.getAlign(), mask);
  else
    builder.CreateMaskedScatter(lanes, lanes_.vector(address, builder), store.getAlign(), mask);
}

}  // namespace kiln::widening
