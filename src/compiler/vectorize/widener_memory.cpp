#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/Support/KnownBits.h>

#include <map>

#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/vectorize/tail_loads.h"
#include "compiler/vectorize/widener.h"

namespace kiln::widening {

// Without AVX-512 LLVM makes a branch for each lane of a gather or scatter; a loop over lanes is shorter.
bool Widener::has_gathers(Type* type) const { return has_avx512_ && is_word(layout_.getTypeSizeInBits(type) / 8); }

// One behind the other: a variable of each lane.
void Widener::widen_variable(AllocaInst& variable) {
  if (!variable.isStaticAlloca() || variable.isArrayAllocation()) refuse("a variable of dynamic size");
  IRBuilder<> builder(allocas_);
  uint64_t size = alignTo(layout_.getTypeAllocSize(variable.getAllocatedType()), variable.getAlign());
  AllocaInst* all = builder.CreateAlloca(ArrayType::get(builder.getInt8Ty(), size * kLanes));
  all->setAlignment(std::max(variable.getAlign(), Align(64)));
  Value* offsets = builder.CreateMul(lane_numbers(builder.getInt64Ty()),
                                     ConstantVector::getSplat(ElementCount::getFixed(kLanes), builder.getInt64(size)));
  vectors_[&variable] = builder.CreateGEP(builder.getInt8Ty(), all, offsets);
}

std::optional<Widener::Guarded> Widener::guarded(Value* pointer) {
  auto* choice = dyn_cast<SelectInst>(pointer);
  if (!choice || !is_zeros(choice->getFalseValue())) return std::nullopt;
  return Guarded{choice->getCondition(), choice->getTrueValue()};
}

Widener::Guarded Widener::place_of(Instruction& access) {
  auto* atomic = dyn_cast<AtomicRMWInst>(&access);
  Value* pointer = atomic ? atomic->getPointerOperand() : getLoadStorePointerOperand(&access);
  auto* choice = dyn_cast<SelectInst>(pointer);
  if (choice && (isa<LoadInst>(access) ? is_zeros(choice->getFalseValue()) : is_sink(choice->getFalseValue())))
    return {choice->getCondition(), choice->getTrueValue()};
  return {nullptr, pointer};
}

// A guard's limit less what a row reaches. Made once, where the limit is: many places ask.
Value* Widener::less(Value* limit, uint64_t reach) {
  auto* known = dyn_cast<Instruction>(limit);
  Value*& made = lessened_[{limit, reach}];
  if (made) return made;
  IRBuilder<> builder(known ? known->getParent() : allocas_);
  if (known && isa<PHINode>(known))
    builder.SetInsertPoint(known->getParent(), known->getParent()->getFirstInsertionPt());
  else if (known)
    builder.SetInsertPoint(known->getParent(), std::next(known->getIterator()));
  return made = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, limit, builder.getInt64(reach));
}

// Whether the guard lets those of a row through that are within a range, whatever the code meets when it runs.
bool Widener::is_limited_row(const Guarded& place, uint64_t bytes) {
  auto* comparison = place.allowed ? dyn_cast<ICmpInst>(place.allowed) : nullptr;
  if (!comparison || comparison->getPredicate() != ICmpInst::ICMP_ULT) return false;
  Value *offset = comparison->getOperand(0), *limit = comparison->getOperand(1);
  return offset->getType()->isIntegerTy(64) && !is_divergent(limit) && step_of(place.address, bytes) == 1 &&
         is_certain(place.address) && stride_of(offset) == static_cast<int64_t>(bytes) && is_certain(offset) &&
         computeKnownBits(limit, layout_).countMinLeadingZeros() >= 2;
}

// Whether what the guard does not let through as a whole is loaded by a function that all rows of the module share.
bool Widener::is_edge_loaded(const LoadInst& load, const Guarded& place) {
  Type* type = load.getType();
  uint64_t bytes = layout_.getTypeStoreSize(type);
  return !has_barriers_ && !type->isIntegerTy(1) && bytes == layout_.getTypeAllocSize(type) &&
         is_limited_row(place, bytes);
}

// Nothing where lanes have no row in common, whatever they have when the code runs.
std::optional<Widener::Asked> Widener::prefetch_range(Value* pointer, Value* allowed, const Row& shape,
                                                      IRBuilder<>& builder) {
  Value *offset = nullptr, *limit = nullptr;
  if (allowed && is_divergent(allowed)) {
    auto* comparison = dyn_cast<ICmpInst>(allowed);
    if (!comparison) return std::nullopt;
    bool is_swapped = comparison->getPredicate() == ICmpInst::ICMP_UGT;
    if (!is_swapped && comparison->getPredicate() != ICmpInst::ICMP_ULT) return std::nullopt;
    offset = comparison->getOperand(is_swapped ? 1 : 0);
    limit = comparison->getOperand(is_swapped ? 0 : 1);
    if (is_divergent(limit) || !grow_in_step(offset, pointer)) return std::nullopt;
  }
  // More than the lanes' own elements may be read only where it is known to be there.
  if (!offset && !shape.is_own) return std::nullopt;
  // Where the first lanes would read before the beginning, they do not take part: what follows is asked of those that
  // do.
  bool is_among_present = shape.is_own && shape.lowest == 0 && !is_all(mask_) && is_word(shape.bytes) &&
                          step_of(pointer, shape.bytes) == 1 && reaches_back(pointer) && can_be_at_a_lane(pointer) &&
                          (!offset || can_be_at_a_lane(offset));
  Value *first, *row;
  if (is_among_present) {
    Present present = present_lanes(builder);
    first = at_present_lane(pointer, present.first, builder);
    Value* growing = offset ? offset : pointer;
    auto number_at = [&](Value* lane) {
      Value* one = at_present_lane(growing, lane, builder);
      return one->getType()->isPointerTy() ? builder.CreatePtrToInt(one, builder.getInt64Ty()) : one;
    };
    auto far = [&](Value* lanes) {
      return builder.CreateMul(builder.CreateZExt(lanes, builder.getInt64Ty()), builder.getInt64(shape.bytes));
    };
    Value *first_number = number_at(present.first), *last_number = number_at(present.last);
    row = builder.CreateICmpEQ(builder.CreateSub(last_number, first_number),
                               far(builder.CreateSub(present.last, present.first)));
    if (offset) {
      row = builder.CreateAnd(row, builder.CreateICmpULT(first_number, scalar(limit)));
      row = builder.CreateAnd(row, builder.CreateICmpULT(last_number, scalar(limit)));
    } else if (allowed) {
      row = builder.CreateAnd(row, scalar(allowed));
    }
    first = builder.CreateGEP(builder.getInt8Ty(), first, builder.CreateNeg(far(present.first)));
  } else if (first = at_lane(pointer, shape.lowest, builder); offset) {
    // The address and its distance from the array's beginning grow alike.
    Value* first_offset = at_lane(offset, shape.lowest, builder);
    row = builder.CreateICmpULT(first_offset, less(scalar(limit), shape.reach));
    row = builder.CreateAnd(is_row(offset, builder), row);
  } else {
    row = is_row(pointer, builder);
    if (allowed) row = builder.CreateAnd(row, scalar(allowed));
  }
  // Without masks in memory all lanes must take part.
  if (shape.is_for_all ? !offset && !is_all(mask_) : !is_word(shape.bytes) && !has_avx512_)
    row = builder.CreateAnd(
        row, builder.CreateICmpEQ(builder.CreateBitCast(mask_, builder.getInt32Ty()), builder.getInt32(-1)));
  return Asked{row, first, offset, limit, is_among_present};
}

// Of what is no row that is there, whether it lies outside as a whole, as a place beyond the border of an image: loads
// give zero. Null where that is not known.
Value* Widener::is_outside(const Asked& asked, const Row& shape, IRBuilder<>& builder) {
  if (!asked.offset || asked.is_among_present) return nullptr;
  Value* lowest = at_lane(asked.offset, shape.lowest, builder);
  Value* none = builder.CreateAnd(builder.CreateICmpUGE(lowest, scalar(asked.limit)),
                                  builder.CreateICmpULE(lowest, builder.getInt64(~shape.reach)));
  return builder.CreateAnd(is_row(asked.offset, builder), none);
}

// An access as one of all lanes together where they follow one another and the guard lets all of them through;
// `together(address)` and `apart()` make the code, and what they return is chosen.
Widener::Values Widener::by_shape(Value* pointer, Value* allowed, const Row& shape, IRBuilder<>& builder,
                                  MakerAt together, Maker apart) {
  std::optional<Asked> asked = prefetch_range(pointer, allowed, shape, builder);
  if (!asked) return apart();
  if (auto* known = dyn_cast<ConstantInt>(asked->is_row); known && known->isOne()) return together(asked->first);
  Values results;
  auto row = [&] { return results = together(asked->first); };
  auto zeros = [&] {
    Values zeros;
    for (Value* result : results) zeros.push_back(Constant::getNullValue(result->getType()));
    return zeros;
  };
  auto lanes = [&] {
    bool check_scalarized = shape.check_scalarized || is_masked_row(pointer, shape.bytes);
    Value* none = check_scalarized ? nullptr : is_outside(*asked, shape, builder);
    return none ? either({none, "none", "some", false}, builder, zeros, apart) : apart();
  };
  return either({asked->is_row, "row", "lanes"}, builder, row, lanes);
}

// How many elements lie from one lane's to the next one's, where that is worth other accesses than lane by lane: 1,
// and 2, 4 or 8 words, as threads that do four elements each have it.
uint64_t Widener::step_of(Value* pointer, uint64_t bytes) {
  std::optional<int64_t> stride = stride_of(pointer);
  if (!stride) return 0;
  for (int64_t step : {1, 2, 4, 8})
    if (*stride == step * static_cast<int64_t>(bytes))
      return step == 1 || is_word(bytes) ? static_cast<uint64_t>(step) : 0;
  return 0;
}

// Elements of a register.
unsigned Widener::register_lanes(Type* element) const {
  return static_cast<unsigned>((has_avx512_ ? 64 : 32) / layout_.getTypeStoreSize(element));
}

// Of what the lanes load, so many elements that follow one another. The load is where the lanes' own would be.
LoadInst* Widener::load_part(const LoadInst& load, unsigned count, Value* address, IRBuilder<>& builder) {
  LoadInst* part = builder.CreateAlignedLoad(FixedVectorType::get(load.getType(), count), address, load.getAlign());
  part->copyMetadata(load, {LLVMContext::MD_invariant_load});
  return part;
}

// Of every `step` elements from the address on those at `places`: registers, of which the even or the odd elements of
// pairs are taken, and again.
Widener::Values Widener::load_steps(const LoadInst& load, Value* address, uint64_t step, ArrayRef<uint64_t> places,
                                    IRBuilder<>& builder, Values* in_memory) {
  Type* element = load.getType();
  unsigned width = register_lanes(element);
  Values registers;
  for (unsigned i = 0; i < kLanes * step; i += width)
    registers.push_back(load_part(load, width, builder.CreateConstGEP1_32(element, address, i), builder));
  if (in_memory) *in_memory = registers;
  if (layout_.getTypeStoreSize(element) == 4 && (step == 8 || !has_avx512_))
    return load_words(load, address, step, places, builder);
  // What is left of the registers when the places' lowest bits are taken off: by the bits, and how many they are.
  std::map<std::pair<uint64_t, uint64_t>, Values> parts{{{1, 0}, std::move(registers)}};
  auto part = [&](auto&& self, uint64_t size, uint64_t place) -> Values& {
    auto found = parts.find({size, place});
    if (found != parts.end()) return found->second;
    Values& whole = self(self, size / 2, place % (size / 2));
    SmallVector<int> sources;
    for (unsigned i = 0; i < width; ++i) sources.push_back(static_cast<int>(2 * i + (place >= size / 2)));
    Values halves;
    for (unsigned i = 0; i < whole.size(); i += 2)
      halves.push_back(builder.CreateShuffleVector(whole[i], whole[i + 1], sources));
    return parts[{size, place}] = std::move(halves);
  };
  Values results;
  for (uint64_t place : places) results.push_back(concatenateVectors(builder, part(part, step, place)));
  return results;
}

// The same of words. Permutations within chunks of four words, which are the fastest, turn four registers around: from
// four lanes' four members to four members' four lanes. What lanes have beside is in other chunks.
//
// With AVX2 the register's other half is loaded from four lanes later, so that lanes are in order then. With AVX-512 a
// register of two lanes' eight members becomes one of eight lanes' two, and one more permutation takes each member's
// from two of those.
Widener::Values Widener::load_words(const LoadInst& load, Value* address, uint64_t step, ArrayRef<uint64_t> places,
                                    IRBuilder<>& builder) {
  constexpr unsigned kChunk = 4;
  Type* element = load.getType();
  unsigned width = register_lanes(element);
  auto part = [&](uint64_t place, unsigned count) -> Value* {
    return load_part(load, count, builder.CreateConstGEP1_64(element, address, place), builder);
  };
  // In each chunk, by what it is to have: a place in the first register's chunk, or from `kChunk` on in the second's.
  auto shuffled = [&](Value* one, Value* other, std::array<unsigned, kChunk> from) {
    SmallVector<int> sources;
    for (unsigned i = 0; i < width; ++i) {
      unsigned place = from[i % kChunk];
      sources.push_back(static_cast<int>(i / kChunk * kChunk + place % kChunk + place / kChunk * width));
    }
    return builder.CreateShuffleVector(one, other, sources);
  };
  using Four = std::array<Value*, kChunk>;
  auto turned = [&](const Four& lanes) -> Four {
    Value *a = shuffled(lanes[0], lanes[1], {0, 4, 1, 5}), *b = shuffled(lanes[2], lanes[3], {0, 4, 1, 5});
    Value *c = shuffled(lanes[0], lanes[1], {2, 6, 3, 7}), *d = shuffled(lanes[2], lanes[3], {2, 6, 3, 7});
    return {shuffled(a, b, {0, 1, 4, 5}), shuffled(a, b, {2, 3, 6, 7}), shuffled(c, d, {0, 1, 4, 5}),
            shuffled(c, d, {2, 3, 6, 7})};
  };
  SmallVector<Values> members(step);
  for (unsigned first = 0; first < kLanes; first += width) {
    if (!has_avx512_) {
      auto chunks = [&](uint64_t which) {
        uint64_t place = first * step + which * kChunk;
        return concatenateVectors(builder, {part(place, kChunk), part(place + kChunk * step, kChunk)});
      };
      if (step == 2) {
        Value *low = chunks(0), *high = chunks(1);
        for (unsigned i = 0; i < 2; ++i) members[i].push_back(shuffled(low, high, {i, i + 2, i + 4, i + 6}));
        continue;
      }
      for (uint64_t which = 0; which < step / kChunk; ++which) {
        Four lanes;
        for (unsigned i = 0; i < kChunk; ++i) lanes[i] = chunks(i * step / kChunk + which);
        for (auto [i, member] : enumerate(turned(lanes))) members[which * kChunk + i].push_back(member);
      }
      continue;
    }
    auto eight_lanes = [&](unsigned lane) {
      Four lanes;
      for (unsigned i = 0; i < kChunk; ++i) lanes[i] = part((lane + 2 * i) * step, width);
      return turned(lanes);
    };
    Four low = eight_lanes(first), high = eight_lanes(first + width / 2);
    for (unsigned member = 0; member < step; ++member) {
      SmallVector<int> sources;
      for (unsigned lane = 0; lane < width; ++lane) {
        unsigned chunk = lane % 2 * 2 + member / kChunk;
        sources.push_back(static_cast<int>(lane / 8 * width + chunk * kChunk + lane % 8 / 2));
      }
      members[member].push_back(builder.CreateShuffleVector(low[member % kChunk], high[member % kChunk], sources));
    }
  }
  Values results;
  for (uint64_t place : places) results.push_back(concatenateVectors(builder, members[place]));
  return results;
}

void Widener::store_steps(Value* lanes, Value* address, uint64_t step, Align alignment, IRBuilder<>& builder) {
  Type* element = lanes->getType()->getScalarType();
  unsigned width = register_lanes(element), taken = width / static_cast<unsigned>(step);
  for (unsigned first = 0; first < kLanes; first += taken) {
    SmallVector<int> sources;
    SmallVector<Constant*> is_real_edge;
    for (unsigned i = 0; i < width; ++i) {
      sources.push_back(static_cast<int>(first + i / step));
      is_real_edge.push_back(builder.getInt1(i % step == 0));
    }
    Value* mask = builder.CreateShuffleVector(mask_, sources);
    mask = builder.CreateAnd(mask, ConstantVector::get(is_real_edge));
    builder.CreateMaskedStore(builder.CreateShuffleVector(lanes, sources),
                              builder.CreateConstGEP1_32(element, address, static_cast<unsigned>(first * step)),
                              alignment, mask);
  }
}

Value* Widener::load_row(LoadInst& load, Value* address, IRBuilder<>& builder) {
  Type* type = vector_of(load.getType());
  if (is_all(mask_) || (!is_word(layout_.getTypeStoreSize(load.getType())) && !has_avx512_))
    return builder.CreateAlignedLoad(type, address, load.getAlign());
  return builder.CreateMaskedLoad(type, address, load.getAlign(), mask_, Constant::getNullValue(type));
}

void Widener::widen_load(LoadInst& load, IRBuilder<>& builder) {
  if (auto tile = tiles_.find(&load); tile != tiles_.end()) return load_tile(tile->second, builder);
  if (auto rows = rows_of_.find(&load); rows != rows_of_.end())
    return load_one_of_rows(load, rows_[rows->second], builder);
  widen_load_alone(load, builder);
}

void Widener::widen_load_alone(LoadInst& load, IRBuilder<>& builder) {
  if (!load.getType()->isIntegerTy(1) && is_divergent(load.getPointerOperand())) {
    Value *pointer = load.getPointerOperand(), *allowed = nullptr;
    if (auto guard = guarded(pointer)) {
      pointer = guard->address;
      allowed = guard->allowed;
    }
    if (choose_address(load, pointer, allowed, builder)) return;
    uint64_t bytes = layout_.getTypeStoreSize(load.getType());
    uint64_t step = step_of(pointer, bytes);
    auto together = [&](Value* address) -> Values {
      if (step > 1) return load_steps(load, address, step, {0}, builder);
      Value* row = load_row(load, address, builder);
      // It is where the lanes' own loads would be.
      if (auto* whole = dyn_cast<LoadInst>(row)) whole->copyMetadata(load, {LLVMContext::MD_invariant_load});
      return {row};
    };
    auto apart = [&]() -> Values {
      widen_load_scalarized(load, builder);
      return {vectors_[&load]};
    };
    if (auto group = groups_.find(&load); group != groups_.end()) return load_group(group->second, builder);
    if (step != 0) {
      Row shape{bytes, (step * kLanes - 1) * bytes, step == 1};
      shape.check_scalarized = is_edge_loaded(load, {allowed, pointer});
      vectors_[&load] = by_shape(pointer, allowed, shape, builder, together, apart)[0];
      return;
    }
    if (load_pattern(load, pointer, allowed, builder)) return;
  }
  widen_load_scalarized(load, builder);
}

void Widener::widen_load_scalarized(LoadInst& load, IRBuilder<>& builder) {
  Value* pointer = load.getPointerOperand();
  if (!is_divergent(pointer)) {
    // The same address, but a loop makes the value differ.
    Value* same = builder.Insert(with_operands(load, scalar(pointer)));
    vectors_[&load] = builder.CreateVectorSplat(kLanes, same);
    return;
  }
  auto [allowed, address] = place_of(load);
  if (is_edge_loaded(load, {allowed, address})) {
    auto* comparison = cast<ICmpInst>(allowed);
    vectors_[&load] =
        load_edge_row(*load.getType(), at_lane(address, 0, builder), at_lane(comparison->getOperand(0), 0, builder),
                      scalar(comparison->getOperand(1)), builder);
    return;
  }
  bool is_row = !load.getType()->isIntegerTy(1) && is_masked_row(address, layout_.getTypeStoreSize(load.getType()));
  if (!is_row && !has_gathers(load.getType())) return each_lane(load, builder);
  Value* mask = allowed ? narrowed(mask_, vector(allowed, builder), builder) : mask_;
  Type* type = vector_of(load.getType());
  Constant* zero = Constant::getNullValue(type);
  vectors_[&load] = is_row ? builder.CreateMaskedLoad(type, at_lane(address, 0, builder), load.getAlign(), mask, zero)
                           : builder.CreateMaskedGather(type, vector(address, builder), load.getAlign(), mask, zero);
}

void Widener::widen_store(StoreInst& store, IRBuilder<>& builder) {
  if (auto tile = tiles_.find(&store); tile != tiles_.end()) return store_tile(tile->second, builder);
  widen_store_alone(store, builder);
}

void Widener::widen_store_alone(StoreInst& store, IRBuilder<>& builder) {
  Value* pointer = store.getPointerOperand();
  Value* value = store.getValueOperand();
  if (!is_divergent(pointer) && !is_divergent(value)) {
    // A block runs only where some lane is in it.
    builder.Insert(with_operands(store, {scalar(value), scalar(pointer)}));
    return;
  }
  if (!is_divergent(pointer)) {
    // As if lanes stored one after the other.
    Value* bits = builder.CreateBitCast(mask_, builder.getInt32Ty());
    Value* last = builder.CreateSub(builder.getInt32(31),
                                    builder.CreateBinaryIntrinsic(Intrinsic::ctlz, bits, builder.getTrue()));
    Value* stored = builder.CreateExtractElement(vector(value, builder), last);
    builder.Insert(with_operands(store, {stored, scalar(pointer)}));
    return;
  }
  if (waiting_stores_.contains(&store)) return;
  if (auto group = groups_.find(&store); group != groups_.end()) return store_group(group->second, builder);
  auto [allowed, address] = place_of(store);
  auto apart = [&]() -> Values {
    widen_store_scalarized(store, builder);
    return {};
  };
  if (value->getType()->isIntegerTy(1)) {
    apart();
    return;
  }
  uint64_t bytes = layout_.getTypeStoreSize(value->getType());
  uint64_t step = step_of(address, bytes);
  // A register must reach from one lane to the next.
  if (step == 0 || (step > 1 && step > register_lanes(value->getType()))) {
    apart();
    return;
  }
  Value* lanes = vector(value, builder);
  auto together = [&](Value* first) -> Values {
    if (step > 1)
      store_steps(lanes, first, step, store.getAlign(), builder);
    else if (is_all(mask_) || (!is_word(bytes) && !has_avx512_))
      builder.CreateAlignedStore(lanes, first, store.getAlign());
    else
      builder.CreateMaskedStore(lanes, first, store.getAlign(), mask_);
    return {};
  };
  by_shape(address, allowed, {bytes, step * bytes * (kLanes - 1), true}, builder, together, apart);
}

void Widener::widen_store_scalarized(StoreInst& store, IRBuilder<>& builder) {
  Value* value = store.getValueOperand();
  auto [allowed, address] = place_of(store);
  bool is_row = !value->getType()->isIntegerTy(1) && is_masked_row(address, layout_.getTypeStoreSize(value->getType()));
  if (!is_row && !has_gathers(value->getType())) return each_lane(store, builder);
  Value *mask = allowed ? narrowed(mask_, vector(allowed, builder), builder) : mask_, *lanes = vector(value, builder);
  if (is_row)
    builder.CreateMaskedStore(lanes, at_lane(address, 0, builder), store.getAlign(), mask);
  else
    builder.CreateMaskedScatter(lanes, vector(address, builder), store.getAlign(), mask);
}

}  // namespace kiln::widening
