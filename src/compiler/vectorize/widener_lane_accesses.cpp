#include "compiler/vectorize/widener_lane_accesses.h"

#include "compiler/ir/metadata.h"
#include "compiler/vectorize/register_tables.h"
#include "compiler/vectorize/tail_loads.h"

namespace kiln::widening {

static constexpr uint64_t kWordBytes = sizeof(uint32_t);

// So few lanes load one by one in the time of a gather, where gathers do not always pay.
static constexpr unsigned kMostOneByOne = 12;

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
  if (!is_masked && load_from_registers(load, {allowed, address}, builder)) return;
  if (!is_masked && !lanes_.is_gathered(load)) return lane_loops_.for_each_lane(load, builder);
  Value* mask = allowed ? lanes_.narrowed(lanes_.mask(), lanes_.vector(allowed, builder), builder) : lanes_.mask();
  if (is_masked) {
    Type* type = vector_of(load.getType());
    lanes_.set_vector(&load, builder.CreateMaskedLoad(type, lane_scalars_.at_lane(address, 0, builder), load.getAlign(),
                                                      mask, Constant::getNullValue(type)));
    return;
  }
  if (!may_have_few_lanes(load)) return lanes_.set_vector(&load, gather(load, address, mask, builder));
  Value* count = builder.CreateUnaryIntrinsic(Intrinsic::ctpop, lanes_.mask_bits(builder));
  auto gathered = [&]() -> Values { return {gather(load, address, mask, builder)}; };
  auto one_by_one = [&]() -> Values {
    lane_loops_.for_each_lane(load, builder);
    return {lanes_.known_vector(&load)};
  };
  IfElse are_many{builder.CreateICmpUGT(count, builder.getInt32(kMostOneByOne)), "gather", "lanes", false};
  lanes_.set_vector(&load, lanes_.create_if_else(are_many, builder, gathered, one_by_one)[0]);
}

// Whether the load is in a loop that lanes leave in different iterations.
bool LaneAccesses::may_have_few_lanes(const LoadInst& load) const {
  if (lanes_.vector_isa().gathers_always_pay) return false;
  for (const Loop* loop = loops_.getLoopFor(load.getParent()); loop; loop = loop->getParentLoop())
    if (flow_.is_divergent_loop(*loop)) return true;
  return false;
}

Value* LaneAccesses::gather(LoadInst& load, Value* address, Value* mask, IRBuilder<>& builder) {
  if (lanes_.gathers_words_of(load)) return gather_parts_of_words(load, address, mask, builder);
  Type* type = vector_of(load.getType());
  return builder.CreateMaskedGather(type, lanes_.vector(address, builder), load.getAlign(), mask,
                                    Constant::getNullValue(type));
}

bool LaneAccesses::load_from_registers(LoadInst& load, const GuardedAddress& target, IRBuilder<>& builder) {
  const uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  if (load.getType()->isIntegerTy(1)) return false;
  const std::optional<RegisterTable> table = register_table_of(target.address, bytes, layout_, lanes_.vector_isa());
  if (!table) return false;
  Type* words = vector_of(builder.getInt32Ty());
  auto constant = [&](uint64_t value) { return ConstantInt::get(words, value); };
  // Indices that are in bounds have 32 bits.
  Value* index = table->index;
  if (auto* extension = dyn_cast<CastInst>(index);
      extension && isa<SExtInst, ZExtInst>(extension) && extension->getSrcTy()->isIntegerTy(32))
    index = extension->getOperand(0);
  Value* places = builder.CreateZExtOrTrunc(lanes_.vector(index, builder), words);
  const unsigned parts = Log2_64(kWordBytes / bytes);
  Value* found = words_of_table(*table, builder.CreateLShr(places, constant(parts)), lanes_.vector_isa(), builder);
  if (parts) {
    Value* part = builder.CreateAnd(places, constant(kWordBytes / bytes - 1));
    found = builder.CreateLShr(found, builder.CreateShl(part, constant(Log2_64(8 * bytes))));
    found = builder.CreateTrunc(found, vector_of(builder.getIntNTy(static_cast<unsigned>(8 * bytes))));
  }
  Type* type = vector_of(load.getType());
  found = builder.CreateBitCast(found, type);
  if (target.allowed)
    found = builder.CreateSelect(lanes_.vector(target.allowed, builder), found, Constant::getNullValue(type));
  lanes_.set_vector(&load, found);
  return true;
}

// Gathers the words in which the elements lie. A word is in one page, so that all of it can be read where a part can.
// Indices of 32 bits stay such.
Value* LaneAccesses::gather_parts_of_words(LoadInst& load, Value* address, Value* mask, IRBuilder<>& builder) {
  const uint64_t bytes = layout_.getTypeStoreSize(load.getType()), parts = kWordBytes / bytes;
  Type *number = builder.getInt64Ty(), *words = vector_of(builder.getInt32Ty());
  auto constant = [&](uint64_t value) { return ConstantInt::get(words, value); };
  Value *from, *part;  // the words' addresses, the element's place in each
  if (std::optional<LaneIndex> index = narrow_index_of(address, bytes)) {
    Value *base = lanes_.scalar(index->base), *lanes = lanes_.vector(index->number, builder);
    Value* first = builder.CreateAnd(builder.CreatePtrToInt(base, number), builder.getInt64(kWordBytes - 1));
    first = builder.CreateLShr(builder.CreateTrunc(first, builder.getInt32Ty()), Log2_64(bytes));
    // Not the index and `first`, whose sum may wrap.
    Value* part_of_sum =
        builder.CreateAdd(builder.CreateAnd(lanes, constant(parts - 1)), builder.CreateVectorSplat(kLanes, first));
    Value* shift = constant(Log2_64(parts));
    Value* word = index->is_signed ? builder.CreateAShr(lanes, shift) : builder.CreateLShr(lanes, shift);
    word = builder.CreateAdd(word, builder.CreateLShr(part_of_sum, shift));
    Value* words_base = builder.CreateIntrinsic(Intrinsic::ptrmask, {base->getType(), number},
                                                {base, builder.getInt64(~(kWordBytes - 1))});
    from = builder.CreateGEP(builder.getInt32Ty(), words_base, builder.CreateSExt(word, vector_of(number)));
    part = builder.CreateAnd(part_of_sum, constant(parts - 1));
  } else {
    // LLVM gives attributes to a `ptrmask` of vectors that these may not have.
    Value* addresses = lanes_.vector(address, builder);
    Type* numbers = vector_of(number);
    Value* in_word =
        builder.CreateAnd(builder.CreatePtrToInt(addresses, numbers), ConstantInt::get(numbers, kWordBytes - 1));
    from = builder.CreateGEP(builder.getInt8Ty(), addresses, builder.CreateNeg(in_word));
    part = builder.CreateLShr(builder.CreateTrunc(in_word, words), constant(Log2_64(bytes)));
  }
  Value* gathered = builder.CreateMaskedGather(words, from, Align(kWordBytes), mask, Constant::getNullValue(words));
  Value* elements = builder.CreateLShr(gathered, builder.CreateShl(part, constant(Log2_64(8 * bytes))));
  return elements_at(elements, 0, load.getType(), builder);
}

// The address as an array's with an index of 32 bits, of which the word's index is one with a sign.
std::optional<LaneAccesses::LaneIndex> LaneAccesses::narrow_index_of(Value* address, uint64_t bytes) const {
  auto* gep = dyn_cast<GetElementPtrInst>(address);
  if (!gep || lanes_.is_divergent(gep->getPointerOperand()) || gep->getNumIndices() != 1 ||
      layout_.getTypeAllocSize(gep->getSourceElementType()) != bytes)
    return std::nullopt;
  Value* index = gep->getOperand(1);
  bool is_signed = true;
  if (auto* extension = dyn_cast<CastInst>(index); extension && isa<SExtInst, ZExtInst>(extension)) {
    index = extension->getOperand(0);
    is_signed = isa<SExtInst>(extension);
  }
  // Half of an unsigned index, and one more, may be no number with a sign.
  if (!index->getType()->isIntegerTy(32) || (!is_signed && bytes != 1)) return std::nullopt;
  return LaneIndex{gep->getPointerOperand(), index, is_signed};
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
