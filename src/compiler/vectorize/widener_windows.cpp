// Accesses to threadgroup memory whose lanes are no consecutive parts, but permutations of what lies close together.
//
// Problem: threads exchange values at a distance that a loop changes: `s[t ^ j]`, or `s[t / j * 2 * j + t % j]` and the
// element at a distance of `j`, as sorting networks and transforms do. From a part's width on, parts are consecutive.
// At smaller distances lanes were gathered and scattered one by one, although each part has its elements in two
// registers.
//
// Idea: a part's window is the aligned range of twice as many elements as it has lanes, in which its first lane's
// element lies. If all lanes' elements are in it, a load of the part is one of two registers, of which each lane takes
// its element by a permutation, whichever it is.
//
// A store needs the reverse, the lane for each element. It is known if the lane's number, with a 0 inserted at the bit
// that is the distance, and some bits inverted, is the element's number. That describes both partners of all
// butterflies in a window, and with the distance equal to the width, where the 0 is the topmost bit, all `t ^ j`. What
// the distance is follows from the first and the last lane alone. So it is a comparison as well. Elements that no lane
// stores to are masked, or written as they were read: only one simdgroup of a threadgroup runs at a time.
//
// Rejected: a switch over the distances with permutations that are constant: five times the code. A table of
// permutations by distance: as many loads as the reverse has operations. A reverse of any permutation, which is made by
// a loop over lanes: that takes as long as the scatter.
#include "compiler/vectorize/widener_windows.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/GlobalVariable.h>

#include "compiler/ir/sections.h"
#include "compiler/vectorize/widener_run_time_shapes.h"

namespace kiln::widening {

bool is_in_threadgroup_memory(const Value* address) {
  SmallVector<const Value*> objects;
  getUnderlyingObjects(address, objects);
  return all_of(objects, [](const Value* object) {
    const auto* variable = dyn_cast<GlobalVariable>(object);
    return variable && variable->getSection() == kThreadgroupSection;
  });
}

// Whether it is worth the code to ask for windows. All elements of a window must be the array's, which a guard or the
// array's size says.
bool RunTimeShapes::has_windows(const Shape& shape, Value* address, Type* type) const {
  if (!isa_.permute_register || type->isPointerTy() || layout_.getTypeStoreSize(type) != sizeof(uint32_t) ||
      shape.address.is_quotient || shape.part_lanes != isa_.num_words())
    return false;
  return shape.variable || (shape.offset && is_in_threadgroup_memory(address));
}

RunTimeShapes::Windows RunTimeShapes::windows_of(const Shape& shape, IRBuilder<>& builder) {
  const unsigned width = shape.part_lanes, size = kWindowRegisters * width;
  const TestedSum& test = tested(peeled(shape.address).inner, width, builder);
  auto* number = cast<IntegerType>(test.numbers->getType()->getScalarType());
  auto as_word = [&](Value* value) {
    Type* word = value->getType()->isVectorTy() ? static_cast<Type*>(FixedVectorType::get(builder.getInt32Ty(), width))
                                                : builder.getInt32Ty();
    return builder.CreateZExtOrTrunc(value, word);
  };
  Windows windows{nullptr, {}, {}, nullptr};
  Value *passed = nullptr, *steps = nullptr;
  auto require = [&](Value* what) { passed = passed ? builder.CreateAnd(passed, what) : what; };
  for (auto [i, first] : enumerate(test.firsts)) {
    const auto lanes = createSequentialMask(static_cast<unsigned>(i) * width, width, 0);
    Value* part = builder.CreateShuffleVector(test.numbers, lanes);
    Value* from_first = builder.CreateXor(part, splat(first, width, builder));
    if (shape.is_load) {
      require(builder.CreateICmpULT(from_first, ConstantInt::get(from_first->getType(), size)));
    } else {
      if (!windows.distance) {
        // The last lane's number has only ones: there the bit that is 0 is the distance.
        Value* last = as_word(builder.CreateExtractElement(from_first, width - 1));
        windows.distance = builder.CreateXor(last, size - 1);
        Value* below = splat(builder.CreateSub(windows.distance, builder.getInt32(1)), width, builder);
        steps = builder.CreateZExtOrTrunc(with_zero_inserted(words_from(0, width, builder), below, builder),
                                          FixedVectorType::get(number, width));
      }
      require(builder.CreateICmpEQ(from_first, steps));
    }
    if (test.are_small) require(builder.CreateShuffleVector(test.are_small, lanes));
    windows.places.push_back(builder.CreateAnd(
        as_word(part), ConstantInt::get(FixedVectorType::get(builder.getInt32Ty(), width), size - 1)));
    windows.bases.push_back(builder.CreateAnd(first, ConstantInt::getSigned(number, -static_cast<int64_t>(size))));
  }
  windows.condition = all_of_lanes(passed, builder);
  return windows;
}

Values RunTimeShapes::addresses_of(const Shape& shape, ArrayRef<Value*> firsts, IRBuilder<>& builder) {
  Value* start = without_terms(shape.address.value, builder);
  Values addresses;
  for (Value* first : firsts)
    addresses.push_back(builder.CreateGEP(builder.getInt8Ty(), start, distance(shape, shape.address, first, builder)));
  return addresses;
}

// That the elements from each of `firsts` to the one that is `last` elements later are in bounds: the guard allows
// them, or they are the variable's. Null if neither tells.
Value* RunTimeShapes::are_in_bounds(const Shape& shape, ArrayRef<Value*> firsts, Value* last, IRBuilder<>& builder) {
  Value* condition = shape.allowed && !shape.offset ? lanes_.scalar(shape.allowed) : nullptr;
  if (!shape.offset && !shape.variable) return condition;
  Value *limit, *start;
  if (shape.offset) {
    start = without_terms(shape.offset->value, builder);
    limit = lanes_.scalar(shape.limit);
  } else {
    auto* variable = const_cast<GlobalVariable*>(shape.variable);
    Value* address = builder.CreatePtrToInt(without_terms(shape.address.value, builder), builder.getInt64Ty());
    start = builder.CreateSub(address, builder.CreatePtrToInt(variable, builder.getInt64Ty()));
    // The last element's last member begins before that.
    const uint64_t size = layout_.getTypeAllocSize(variable->getValueType());
    limit = builder.getInt64(size - std::min(size, shape.bytes - 1));
  }
  Value* bytes = builder.CreateMul(last, builder.getInt64(shape.bytes));
  Value* reduced = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, limit, bytes);
  const LaneSum& sum = shape.offset ? *shape.offset : shape.address;
  for (Value* first : firsts) {
    Value* fits = builder.CreateICmpULT(builder.CreateAdd(start, distance(shape, sum, first, builder)), reduced);
    condition = condition ? builder.CreateAnd(condition, fits) : fits;
  }
  return condition;
}

// Extends the windows' bases to 64 bits. The condition that they are windows and in bounds.
Value* RunTimeShapes::fit(const Shape& shape, Windows& windows, IRBuilder<>& builder) {
  const unsigned size = kWindowRegisters * shape.part_lanes;
  Value* condition = windows.condition;
  auto require = [&](Value* what) { condition = what ? builder.CreateAnd(condition, what) : condition; };
  require(extended(shape.address, peeled(shape.address).added, windows.bases, size, true, builder));
  require(are_in_bounds(shape, windows.bases, builder.getInt64(size - 1), builder));
  for (const Shape& other : shape.others)
    require(are_in_bounds(other, windows.bases, builder.getInt64(size - 1), builder));
  return condition;
}

// Words of two registers.
Value* RunTimeShapes::taken(ArrayRef<Value*> registers, Value* places, IRBuilder<>& builder) {
  if (isa_.permute_two_registers) return isa_.permute_two_registers(registers[0], registers[1], places, builder);
  Value* is_high = builder.CreateICmpUGE(places, ConstantInt::get(places->getType(), isa_.num_words()));
  Value* low = isa_.permute_register(registers[0], places, builder);
  return builder.CreateSelect(is_high, isa_.permute_register(registers[1], places, builder), low);
}

// `mask`: null for all.
void RunTimeShapes::store_words(Value* words, Value* address, Value* mask, Align alignment, IRBuilder<>& builder) {
  if (mask && isa_.has_mask_registers) {
    builder.CreateMaskedStore(words, address, alignment, mask);
    return;
  }
  if (mask) words = builder.CreateSelect(mask, words, builder.CreateAlignedLoad(words->getType(), address, alignment));
  builder.CreateAlignedStore(words, address, alignment);
}

// So many elements of each member, of consecutive structures.
Values RunTimeShapes::load_members(ArrayRef<Instruction*> members, unsigned count, Value* address, Align alignment,
                                   IRBuilder<>& builder) {
  const auto step = static_cast<unsigned>(members.size());
  Type* words = FixedVectorType::get(builder.getInt32Ty(), count * step);
  Value* all = builder.CreateAlignedLoad(words, address, alignment);
  if (step == 1) return {all};
  Values results;
  for (unsigned i = 0; i < step; ++i)
    results.push_back(builder.CreateShuffleVector(all, createStrideMask(i, step, count)));
  return results;
}

Values RunTimeShapes::load_in_windows(ArrayRef<Instruction*> members, const Shape& shape, IRBuilder<>& builder,
                                      Emitter scalarized) {
  ++num_tested_;
  Windows windows = windows_of(shape, builder);
  Value* condition = fit(shape, windows, builder);
  auto in_windows = [&]() -> Values {
    const unsigned width = shape.part_lanes;
    SmallVector<Values> parts(members.size());
    for (auto [address, places] : zip_equal(addresses_of(shape, windows.bases, builder), windows.places))
      for (auto [i, window] :
           enumerate(load_members(members, kWindowRegisters * width, address, kWindowAlignment, builder))) {
        Value* registers[] = {builder.CreateShuffleVector(window, createSequentialMask(0, width, 0)),
                              builder.CreateShuffleVector(window, createSequentialMask(width, width, 0))};
        parts[i].push_back(taken(registers, places, builder));
      }
    Values results;
    for (auto [load, of_lanes] : zip_equal(members, parts))
      results.push_back(builder.CreateBitCast(concatenateVectors(builder, of_lanes), vector_of(load->getType())));
    return results;
  };
  return lanes_.create_if_else({condition, "windows", "lanes", false}, builder, in_windows, scalarized);
}

void RunTimeShapes::store_in_windows(StoreInst& store, const Shape& shape, IRBuilder<>& builder, Emitter scalarized) {
  ++num_tested_;
  Windows windows = windows_of(shape, builder);
  Value* condition = fit(shape, windows, builder);
  const unsigned width = shape.part_lanes;
  auto in_windows = [&]() -> Values {
    Type* words = FixedVectorType::get(builder.getInt32Ty(), width);
    Value* values = words_of(store, builder);
    Value* distance = splat(windows.distance, width, builder);
    Value* below = builder.CreateSub(distance, ConstantInt::get(words, 1));
    const Values addresses = addresses_of(shape, windows.bases, builder);
    for (unsigned i = 0; i < kWindowRegisters * addresses.size(); ++i) {
      const unsigned part = i / kWindowRegisters, first = i % kWindowRegisters * width;
      const auto lanes = createSequentialMask(part * width, width, 0);
      auto to_places = [&](Value* of_lanes, Value* sources) {
        return isa_.permute_register(builder.CreateShuffleVector(of_lanes, lanes), sources, builder);
      };
      // For each element, the number of which the lane's had a 0 inserted.
      Value* start = builder.CreateExtractElement(windows.places[part], uint64_t{0});
      Value* numbers = builder.CreateXor(words_from(first, width, builder), splat(start, width, builder));
      Value* sources = with_bit_removed(numbers, below, builder);
      Value* mask = builder.CreateICmpEQ(builder.CreateAnd(numbers, distance), Constant::getNullValue(words));
      if (!is_all(lanes_.mask())) {
        Value* active = to_places(builder.CreateSExt(lanes_.mask(), vector_of(builder.getInt32Ty())), sources);
        mask = builder.CreateAnd(mask, builder.CreateICmpNE(active, Constant::getNullValue(words)));
      }
      Value* address = builder.CreateConstGEP1_64(words, addresses[part], i % kWindowRegisters);
      store_words(to_places(values, sources), address, mask, kWindowAlignment, builder);
    }
    return {};
  };
  lanes_.create_if_else({condition, "windows", "lanes", false}, builder, in_windows, scalarized);
}

}  // namespace kiln::widening
