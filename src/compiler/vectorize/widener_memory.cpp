#include "compiler/vectorize/widener_memory.h"

#include <llvm/Analysis/ValueTracking.h>

#include <algorithm>
#include <string_view>

#include "compiler/ir/metadata.h"
#include "compiler/ir/remarks.h"
#include "compiler/vectorize/widener_guards.h"

namespace kiln::widening {

MemoryAccesses::MemoryAccesses(ThreadCode& code, bool has_barriers, LaneScalars& lane_scalars, AddressChecks& checks,
                               LaneLoops& lane_loops, Scratch& scratch, Lanes& lanes)
    : strides_(code.strides),
      checks_(checks),
      lane_loops_(lane_loops),
      lanes_(lanes),
      layout_(lanes.layout()),
      lane_sums_(code.flow, layout_),
      tile_addresses_(code),
      strided_(lanes),
      lane_accesses_(code, has_barriers, lane_scalars, checks, lane_loops, lanes),
      tiles_(code.evolution, tile_addresses_, lane_scalars, lane_accesses_, lanes),
      interleaved_(code, tiles_, lane_scalars, checks, strided_, lane_accesses_, lane_sums_, lanes),
      shared_checks_(code, lane_scalars, checks, strided_, lane_loops, scratch, lanes),
      zeroed_loads_(code.strides, checks, strided_, lane_accesses_, lanes),
      pattern_accesses_(code.patterns, checks, strided_, lane_accesses_, lanes),
      compressed_(code.flow, lane_scalars, checks, lane_accesses_, lanes),
      run_time_shapes_(code, lane_sums_, checks, strided_, lane_accesses_, pattern_accesses_, lanes) {
  auto is_taken = [this](LoadInst& load) { return interleaved_.contains(load) || tiles_.is_at(load); };
  tiles_.find(code.function);
  for (BasicBlock& block : code.function) {
    interleaved_.find(block);
    shared_checks_.find(block, is_taken);
  }
  zeroed_loads_.find(code.function, is_taken);
  auto is_taken_at_all = [&](Instruction& access) {
    if (auto* load = dyn_cast<LoadInst>(&access)) return is_taken(*load);
    auto& store = cast<StoreInst>(access);
    return interleaved_.contains(store) || tiles_.is_at(store) || tiles_.is_deferred(store);
  };
  for (BasicBlock& block : code.function) run_time_shapes_.find(block, is_taken_at_all);
}

// The lanes' variables are consecutive in memory, but for interleaved ones (vectorize/interleaved_variables.h).
void MemoryAccesses::widen_variable(AllocaInst& variable) {
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

void MemoryAccesses::widen_load(LoadInst& load, IRBuilder<>& builder) {
  if (tiles_.load(load, builder) || shared_checks_.load(load, builder)) return;
  widen_single_load(load, builder);
}

void MemoryAccesses::widen_single_load(LoadInst& load, IRBuilder<>& builder) {
  if (!load.getType()->isIntegerTy(1) && lanes_.is_divergent(load.getPointerOperand())) {
    Value *pointer = load.getPointerOperand(), *allowed = nullptr;
    if (auto guard = guarded(pointer)) {
      pointer = guard->address;
      allowed = guard->allowed;
    }
    if (zeroed_loads_.load(load, builder)) return;
    uint64_t bytes = layout_.getTypeStoreSize(load.getType());
    uint64_t step = strides_.element_stride(pointer, bytes);
    const bool is_checked = allowed && lanes_.is_divergent(allowed);
    // Without a bounds check the array may end with the last lane's element. What is between all lanes' is in it, too.
    const uint64_t num_elements = step == 0 ? 0 : step * (kLanes - 1) + (is_checked ? step : 1);
    auto vectorized = [&](Value* address) -> Values {
      if (step > 1) return strided_.load_strided({load, address, num_elements}, step, {0}, builder);
      Value* loaded = strided_.load_consecutive(load, address, builder);
      // It is at the point where the lanes' own loads would be.
      if (auto* full_load = dyn_cast<LoadInst>(loaded)) full_load->copyMetadata(load, {LLVMContext::MD_invariant_load});
      return {loaded};
    };
    auto scalarized = [&]() -> Values {
      lane_accesses_.load(load, builder);
      return {lanes_.known_vector(&load)};
    };
    if (interleaved_.load(load, builder)) return;
    if (lane_loops_.access_few_lanes(load, builder)) return;
    // A checked strided load reads beyond the lanes' last element; exact pieces do not. Of bytes and halves at
    // distances that are no power of two these are faster, too.
    const bool is_odd = !is_word(bytes) && !isPowerOf2_64(step);
    if (step > 1 && (!is_checked || is_odd) && pattern_accesses_.load(load, builder)) return;
    if (step != 0) {
      const bool reads_between = !is_checked && strides_.has_piece(pointer);
      AccessShape shape{bytes, (num_elements - 1) * bytes, step == 1 || reads_between};
      // Elements in bounds are loaded for inactive lanes too.
      shape.needs_full_mask = !lanes_.can_mask(bytes) || (step > 1 && !is_checked);
      shape.slow_path_checks = lane_accesses_.uses_tail_load(load, {allowed, pointer});
      lanes_.set_vector(&load, checks_.emit_by_shape(pointer, allowed, shape, builder, vectorized, scalarized)[0]);
      return;
    }
    if (pattern_accesses_.load(load, builder)) return;
    note_scattered(load, pointer);
    if (run_time_shapes_.load(load, builder)) return;
  }
  lane_accesses_.load(load, builder);
}

// A remark on an access that is none of the widener's vector accesses.
void MemoryAccesses::note_scattered(const Instruction& access, Value* address) {
  if (!keeps_remarks(*access.getFunction())) return;
  const bool is_load = isa<LoadInst>(access);
  const std::string_view noun = is_load ? "load" : "store", what = is_load ? "gather" : "scatter";
  const bool is_indexed = is_load ? lanes_.is_gathered(cast<LoadInst>(access))
                                  : lanes_.has_scatters(cast<StoreInst>(access).getValueOperand()->getType());
  const std::string_view how = is_indexed ? "" : " lane by lane";
  if (isa<AllocaInst>(getUnderlyingObject(address)))
    remark("widen", access, what, how,
           ": each thread's private array is an array of its own, and the index is not "
           "known when the kernel is compiled");
  else if (std::optional<int64_t> stride = strides_.stride_of(address))
    remark("widen", access, what, how, ": the ", noun, "s of neighbouring threads are ", *stride, " bytes apart");
  else
    remark("widen", access, what, how, ": the ", noun, "'s stride from thread to thread is not known");
}

void MemoryAccesses::widen_store(StoreInst& store, IRBuilder<>& builder) {
  if (tiles_.store(store, builder, [&](StoreInst& one) { widen_single_store(one, builder); })) return;
  widen_single_store(store, builder);
}

void MemoryAccesses::widen_single_store(StoreInst& store, IRBuilder<>& builder) {
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
  auto alone = [&](StoreInst& one) { widen_store_alone(one, builder); };
  if (interleaved_.store(store, builder) || run_time_shapes_.store_group(store, alone, builder)) return;
  widen_store_alone(store, builder);
}

void MemoryAccesses::widen_store_alone(StoreInst& store, IRBuilder<>& builder) {
  Value* value = store.getValueOperand();
  auto [allowed, address] = guarded_address_of(store);
  auto scalarized = [&]() -> Values {
    lane_accesses_.store(store, builder);
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
    if (pattern_accesses_.store(store, builder)) return;
    if (compressed_.store(store, builder)) return;
    note_scattered(store, address);
    if (!run_time_shapes_.store(store, builder)) scalarized();
    return;
  }
  Value* lanes = lanes_.vector(value, builder);
  auto vectorized = [&](Value* first) -> Values {
    if (step > 1)
      strided_.store_strided(lanes, first, step, store.getAlign(), builder);
    else if (is_all(lanes_.mask()) || !lanes_.can_mask(bytes))
      mark_of_lanes(*builder.CreateAlignedStore(lanes, first, store.getAlign()));
    else
      mark_of_lanes(*builder.CreateMaskedStore(lanes, first, store.getAlign(), lanes_.mask()));
    return {};
  };
  checks_.emit_by_shape(address, allowed, {bytes, step * bytes * (kLanes - 1), true}, builder, vectorized, scalarized);
}

}  // namespace kiln::widening
