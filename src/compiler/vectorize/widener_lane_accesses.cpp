#include "compiler/vectorize/widener_lane_accesses.h"

#include "compiler/ir/metadata.h"
#include "compiler/vectorize/tail_loads.h"

namespace kiln::widening {

bool LaneAccesses::uses_tail_load(const LoadInst& load, const GuardedAddress& target) {
  Type* type = load.getType();
  uint64_t bytes = layout_.getTypeStoreSize(type);
  return !has_barriers_ && !type->isIntegerTy(1) && bytes == layout_.getTypeAllocSize(type) &&
         checks_.has_range_guard(target, bytes);
}

void LaneAccesses::load(LoadInst& load, IRBuilder<>& builder) {
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

// Loads at a border, for elements that are not gathered: the lanes that are on the side of the pieces with one masked
// load, the others one by one. Which these are the addresses tell.
void LaneAccesses::load_beside_border(LoadInst& load, IRBuilder<>& builder) {
  auto [allowed, address] = guarded_address_of(load);
  const uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  Type *number = builder.getInt64Ty(), *type = vector_of(load.getType());
  SmallVector<Constant*> steps;
  for (unsigned lane = 0; lane < kLanes; ++lane) steps.push_back(builder.getInt64(lane * bytes));
  Value* first = lane_scalars_.at_lane(address, 0, builder);
  Value* expected = builder.CreateAdd(builder.CreateVectorSplat(kLanes, builder.CreatePtrToInt(first, number)),
                                      ConstantVector::get(steps));
  Value* in_line =
      builder.CreateICmpEQ(builder.CreatePtrToInt(lanes_.vector(address, builder), vector_of(number)), expected);
  Value* all = lanes_.mask();
  Value* mask = lanes_.narrowed(all, in_line, builder);
  if (allowed) mask = lanes_.narrowed(mask, lanes_.vector(allowed, builder), builder);
  Value* loaded = builder.CreateMaskedLoad(type, first, load.getAlign(), mask, Constant::getNullValue(type));
  lanes_.set_mask(lanes_.narrowed(all, builder.CreateNot(in_line), builder));
  lane_loops_.for_each_lane(load, builder);
  lanes_.set_mask(all);
  lanes_.set_vector(&load, builder.CreateSelect(in_line, loaded, lanes_.known_vector(&load)));
}

void LaneAccesses::store(StoreInst& store, IRBuilder<>& builder) {
  Value* value = store.getValueOperand();
  auto [allowed, address] = guarded_address_of(store);
  bool is_masked = !value->getType()->isIntegerTy(1) &&
                   checks_.is_masked_access(address, layout_.getTypeStoreSize(value->getType()));
  if (!is_masked && !lanes_.has_scatters(value->getType())) return lane_loops_.for_each_lane(store, builder);
  Value *mask = allowed ? lanes_.narrowed(lanes_.mask(), lanes_.vector(allowed, builder), builder) : lanes_.mask(),
        *lanes = lanes_.vector(value, builder);
  if (is_masked)
    mark_of_lanes(
        *builder.CreateMaskedStore(lanes, lane_scalars_.at_lane(address, 0, builder), store.getAlign(), mask));
  else
    mark_of_lanes(*builder.CreateMaskedScatter(lanes, lanes_.vector(address, builder), store.getAlign(), mask));
}

}  // namespace kiln::widening
