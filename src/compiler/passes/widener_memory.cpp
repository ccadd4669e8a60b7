#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/MDBuilder.h>

#include <map>

#include "compiler/passes/bounds_guards.h"
#include "compiler/passes/guard_sinks.h"
#include "compiler/passes/widener.h"

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
  Value* pointer = getLoadStorePointerOperand(&access);
  auto* choice = dyn_cast<SelectInst>(pointer);
  if (choice && (isa<StoreInst>(access) ? is_sink(choice->getFalseValue()) : is_zeros(choice->getFalseValue())))
    return {choice->getCondition(), choice->getTrueValue()};
  return {nullptr, pointer};
}

// An access as one of all lanes together where they follow one another and the guard lets all of them through;
// `together(address)` and `apart()` make the code, and what they return is chosen.
Widener::Values Widener::by_shape(Value* pointer, Value* allowed, const Row& shape, IRBuilder<>& builder,
                                  MakerAt together, Maker apart) {
  Value *offset = nullptr, *limit = nullptr;
  if (allowed && differs(allowed)) {
    auto* comparison = dyn_cast<ICmpInst>(allowed);
    if (!comparison) return apart();
    bool is_swapped = comparison->getPredicate() == ICmpInst::ICMP_UGT;
    if (!is_swapped && comparison->getPredicate() != ICmpInst::ICMP_ULT) return apart();
    offset = comparison->getOperand(is_swapped ? 1 : 0);
    limit = comparison->getOperand(is_swapped ? 0 : 1);
    if (differs(limit) || !grow_alike(offset, pointer)) return apart();
  }
  // More than the lanes' own elements may be read only where it is known to be there.
  if (!offset && !shape.is_own) return apart();
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
    Value* least = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, scalar(limit), builder.getInt64(shape.reach));
    row = builder.CreateICmpULT(first_offset, least);
    row = builder.CreateAnd(is_row(offset, builder), row);
  } else {
    row = is_row(pointer, builder);
    if (allowed) row = builder.CreateAnd(row, scalar(allowed));
  }
  // Without masks in memory all lanes must take part.
  if (shape.is_for_all ? !offset && !is_all(mask_) : !is_word(shape.bytes) && !has_avx512_)
    row = builder.CreateAnd(
        row, builder.CreateICmpEQ(builder.CreateBitCast(mask_, builder.getInt32Ty()), builder.getInt32(-1)));

  if (auto* known = dyn_cast<ConstantInt>(row); known && known->isOne()) return together(first);
  BasicBlock* before = builder.GetInsertBlock();
  BasicBlock* one = BasicBlock::Create(context_, "row", &to_);
  BasicBlock* many = BasicBlock::Create(context_, "lanes", &to_);
  BasicBlock* after = BasicBlock::Create(context_, "", &to_);
  one->moveAfter(before);
  many->moveAfter(one);
  after->moveAfter(many);
  builder.CreateCondBr(row, one, many, MDBuilder(context_).createBranchWeights(1000, 1));
  builder.SetInsertPoint(one);
  Values results = together(first);
  BasicBlock* one_end = builder.GetInsertBlock();
  builder.CreateBr(after);
  builder.SetInsertPoint(many);
  // A row that lies outside as a whole, as a place beyond the border of an image: loads give zero.
  BasicBlock* none_end = nullptr;
  if (offset && !is_among_present) {
    Value* lowest = at_lane(offset, shape.lowest, builder);
    Value* none = builder.CreateAnd(builder.CreateICmpUGE(lowest, scalar(limit)),
                                    builder.CreateICmpULE(lowest, builder.getInt64(~shape.reach)));
    none = builder.CreateAnd(is_row(offset, builder), none);
    BasicBlock* some = BasicBlock::Create(context_, "some", &to_);
    some->moveAfter(many);
    none_end = builder.GetInsertBlock();
    builder.CreateCondBr(none, after, some);
    builder.SetInsertPoint(some);
  }
  Values others = apart();
  BasicBlock* many_end = builder.GetInsertBlock();
  builder.CreateBr(after);
  builder.SetInsertPoint(after);
  Values both;
  for (auto [result, other] : zip_equal(results, others)) {
    PHINode* phi = builder.CreatePHI(result->getType(), 2);
    phi->addIncoming(result, one_end);
    phi->addIncoming(other, many_end);
    if (none_end) phi->addIncoming(Constant::getNullValue(result->getType()), none_end);
    both.push_back(phi);
  }
  return both;
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

// Of every `step` elements from the address on those at `places`: registers, of which the even or the odd elements of
// pairs are taken, and again.
Widener::Values Widener::load_steps(Type* element, Value* address, uint64_t step, Align alignment,
                                    ArrayRef<uint64_t> places, IRBuilder<>& builder, Values* in_memory) {
  unsigned width = register_lanes(element);
  auto* type = FixedVectorType::get(element, width);
  Values registers;
  for (unsigned i = 0; i < kLanes * step; i += width)
    registers.push_back(builder.CreateAlignedLoad(type, builder.CreateConstGEP1_32(element, address, i), alignment));
  if (in_memory) *in_memory = registers;
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

void Widener::store_steps(Value* lanes, Value* address, uint64_t step, Align alignment, IRBuilder<>& builder) {
  Type* element = lanes->getType()->getScalarType();
  unsigned width = register_lanes(element), taken = width / static_cast<unsigned>(step);
  for (unsigned first = 0; first < kLanes; first += taken) {
    SmallVector<int> sources;
    SmallVector<Constant*> is_taken;
    for (unsigned i = 0; i < width; ++i) {
      sources.push_back(static_cast<int>(first + i / step));
      is_taken.push_back(builder.getInt1(i % step == 0));
    }
    Value* mask = builder.CreateShuffleVector(mask_, sources);
    mask = builder.CreateAnd(mask, ConstantVector::get(is_taken));
    builder.CreateMaskedStore(builder.CreateShuffleVector(lanes, sources),
                              builder.CreateConstGEP1_32(element, address, static_cast<unsigned>(first * step)),
                              alignment, mask);
  }
}

void Widener::widen_load(LoadInst& load, IRBuilder<>& builder) {
  if (auto tile = tiles_.find(&load); tile != tiles_.end()) return load_tile(tile->second, builder);
  if (auto rows = rows_of_.find(&load); rows != rows_of_.end())
    return load_one_of_rows(load, rows_[rows->second], builder);
  widen_load_alone(load, builder);
}

void Widener::widen_load_alone(LoadInst& load, IRBuilder<>& builder) {
  if (!load.getType()->isIntegerTy(1) && differs(load.getPointerOperand())) {
    Value *pointer = load.getPointerOperand(), *allowed = nullptr;
    if (auto guard = guarded(pointer)) {
      pointer = guard->address;
      allowed = guard->allowed;
    }
    Type* type = vector_of(load.getType());
    uint64_t bytes = layout_.getTypeStoreSize(load.getType());
    Value* mask = mask_;
    uint64_t step = step_of(pointer, bytes);
    auto together = [&](Value* address) -> Values {
      if (step > 1) return load_steps(load.getType(), address, step, load.getAlign(), {0}, builder);
      if (is_all(mask) || (!is_word(bytes) && !has_avx512_))
        return {builder.CreateAlignedLoad(type, address, load.getAlign())};
      return {builder.CreateMaskedLoad(type, address, load.getAlign(), mask, Constant::getNullValue(type))};
    };
    auto apart = [&]() -> Values {
      widen_load_apart(load, builder);
      return {vectors_[&load]};
    };
    if (auto group = groups_.find(&load); group != groups_.end()) return load_group(group->second, builder);
    if (step != 0) {
      vectors_[&load] =
          by_shape(pointer, allowed, {bytes, (step * kLanes - 1) * bytes, step == 1}, builder, together, apart)[0];
      return;
    }
    if (load_pattern(load, pointer, allowed, builder)) return;
  }
  widen_load_apart(load, builder);
}

void Widener::widen_load_apart(LoadInst& load, IRBuilder<>& builder) {
  Value* pointer = load.getPointerOperand();
  if (!differs(pointer)) {
    // The same address, but a loop makes the value differ.
    auto* same = cast<LoadInst>(load.clone());
    same->setOperand(0, scalar(pointer));
    builder.Insert(same);
    vectors_[&load] = builder.CreateVectorSplat(kLanes, same);
    return;
  }
  if (!has_gathers(load.getType())) return each_lane(load, builder);
  Value* mask = mask_;
  if (auto guard = guarded(pointer)) {
    Value* allowed = vector(guard->allowed, builder);
    mask = narrowed(mask, allowed, builder);
    pointer = guard->address;
  }
  Type* type = vector_of(load.getType());
  vectors_[&load] =
      builder.CreateMaskedGather(type, vector(pointer, builder), load.getAlign(), mask, Constant::getNullValue(type));
}

void Widener::widen_store(StoreInst& store, IRBuilder<>& builder) {
  if (auto tile = tiles_.find(&store); tile != tiles_.end()) return store_tile(tile->second, builder);
  widen_store_alone(store, builder);
}

void Widener::widen_store_alone(StoreInst& store, IRBuilder<>& builder) {
  Value* pointer = store.getPointerOperand();
  Value* value = store.getValueOperand();
  if (!differs(pointer) && !differs(value)) {
    // A block runs only where some lane is in it.
    auto* same = cast<StoreInst>(store.clone());
    same->setOperand(0, scalar(value));
    same->setOperand(1, scalar(pointer));
    builder.Insert(same);
    return;
  }
  if (!differs(pointer)) {
    // As if lanes stored one after the other.
    Value* bits = builder.CreateBitCast(mask_, builder.getInt32Ty());
    Value* last = builder.CreateSub(builder.getInt32(31),
                                    builder.CreateBinaryIntrinsic(Intrinsic::ctlz, bits, builder.getTrue()));
    auto* one = cast<StoreInst>(store.clone());
    one->setOperand(0, builder.CreateExtractElement(vector(value, builder), last));
    one->setOperand(1, scalar(pointer));
    builder.Insert(one);
    return;
  }
  if (waiting_stores_.contains(&store)) return;
  if (auto group = groups_.find(&store); group != groups_.end()) return store_group(group->second, builder);
  auto [allowed, address] = place_of(store);
  auto apart = [&]() -> Values {
    widen_store_apart(store, builder);
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

void Widener::widen_store_apart(StoreInst& store, IRBuilder<>& builder) {
  Value* value = store.getValueOperand();
  if (!has_gathers(value->getType())) return each_lane(store, builder);
  auto [allowed, address] = place_of(store);
  Value* mask = allowed ? narrowed(mask_, vector(allowed, builder), builder) : mask_;
  builder.CreateMaskedScatter(vector(value, builder), vector(address, builder), store.getAlign(), mask);
}

}  // namespace kiln::widening
