// Groups of accesses whose lanes' addresses turn out to be consecutive, or a butterfly's, when the code runs.
//
// Problem: a step of a transform or a sorting network stores to `s[i]` and to `s[i + j]`, where `i` is the thread's
// number with a 0 inserted at the bit `j`. Each is half of the elements of a window, and of structures of two floats
// each store is half of these. As single stores they need masks, or are scatters.
//
// Idea: together they fill whole registers. Each element of a window takes its value from one of two registers, the
// lanes' values for the first or for the second store, by a permutation that follows from the distance alone
// (widener_windows.cpp). Members of structures are blended, since the permutation is the same for all. If lanes are
// consecutive, which they are at large distances, the members of each side are interleaved.
//
// It is proved that the stores are those of one window when the code runs: the first one's lanes have the numbers of a
// butterfly, and the second one's addresses are as far from its addresses as the inserted bit says.
//
// The members of structures that lanes load are deinterleaved in the same way, in windows and where lanes are
// consecutive.
//
// Linear in the accesses.
#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>

#include "compiler/ir/code_motion.h"
#include "compiler/vectorize/widener_run_time_shapes.h"
#include "compiler/vectorize/widener_windows.h"

namespace kiln::widening {

namespace {

// An access's address: what is constant in it, and the rest.
struct Position {
  Value* base;
  int64_t offset;
};

Position position_of(Instruction& access, const DataLayout& layout) {
  APInt offset(layout.getPointerSizeInBits(), 0);
  Value* address = guarded_address_of(access).address;
  Value* base = address->stripAndAccumulateConstantOffsets(layout, offset, true);
  return {base, offset.getSExtValue()};
}

}  // namespace

Value* RunTimeShapes::words_of(Instruction& store, IRBuilder<>& builder) {
  Value* lanes = lanes_.vector(cast<StoreInst>(store).getValueOperand(), builder);
  return builder.CreateBitCast(lanes, vector_of(builder.getInt32Ty()));
}

// Of a structure's members, in the order of their addresses. Their guards need not be the same, but must be alike.
std::optional<RunTimeShapes::Shape> RunTimeShapes::shape_of_members(ArrayRef<Instruction*> members) {
  std::optional<Shape> shape = shape_of(*members[0], getLoadStoreType(members[0]), kMostMembers);
  if (!shape || shape->address.is_quotient || shape->address.scale != static_cast<int64_t>(members.size()))
    return std::nullopt;
  for (Instruction* member : members.drop_front()) {
    if (guarded_address_of(*member).allowed == shape->allowed) continue;
    std::optional<Shape> other = shape_of(*member, getLoadStoreType(member), kMostMembers);
    if (!other || other->offset.has_value() != shape->offset.has_value() ||
        other->address.scale != shape->address.scale || !other->address.has_terms_of(shape->address.terms))
      return std::nullopt;
    shape->others.push_back(std::move(*other));
  }
  return shape;
}

// Stores with the same base are a side's members. A side is stored as a whole, and the sides may overlap: all of one
// come before all of the other.
std::optional<RunTimeShapes::Butterfly> RunTimeShapes::butterfly_of(ArrayRef<StoreInst*> stores) {
  if (stores.size() < 2) return std::nullopt;
  SmallVector<std::pair<StoreInst*, Position>> sides[2];
  for (StoreInst* store : stores) {
    Position position = position_of(*store, layout_);
    unsigned side = 0;
    while (side < 2 && !sides[side].empty() && sides[side][0].second.base != position.base) ++side;
    if (side == 2 || (side == 0 && !sides[1].empty())) return std::nullopt;
    sides[side].emplace_back(store, position);
  }
  Butterfly result;
  std::optional<Shape> shapes[2];
  for (auto [i, side] : enumerate(sides)) {
    if (side.empty()) continue;
    llvm::sort(side, [](const auto& a, const auto& b) { return a.second.offset < b.second.offset; });
    auto& members = i == 0 ? result.low : result.high;
    for (auto [k, member] : enumerate(side)) {
      const int64_t offset = side[0].second.offset + static_cast<int64_t>(k * sizeof(uint32_t));
      if (member.second.offset != offset) return std::nullopt;
      members.push_back(member.first);
    }
    shapes[i] = shape_of_members(members);
    if (!shapes[i]) return std::nullopt;
  }
  if (result.high.empty()) return result;
  const PeeledSum first = peeled(shapes[0]->address), second = peeled(shapes[1]->address);
  if (result.low.size() != result.high.size() || !first.inner.has_terms_of(second.inner.terms)) return std::nullopt;
  // What is at the distance has more added to it.
  if (second.added.size() < first.added.size()) std::swap(result.low, result.high);
  return result;
}

void RunTimeShapes::find(BasicBlock& block, function_ref<bool(Instruction&)> is_taken) {
  if (!isa_.permute_register) return;
  find_stores(block, is_taken);
  find_loads(block, is_taken);
}

// Loads of all members of a structure that follow one another. All are emitted with the first one.
void RunTimeShapes::find_loads(BasicBlock& block, function_ref<bool(Instruction&)> is_taken) {
  SmallVector<Instruction*> group;
  Position first{nullptr, 0};
  for (Instruction& instruction : make_early_inc_range(block)) {
    auto* load = dyn_cast<LoadInst>(&instruction);
    if (!load) {
      if (instruction.mayWriteToMemory()) group.clear();
      continue;
    }
    if (!load->isSimple() || is_taken(*load) || !is_member(*load)) continue;
    const Position position = position_of(*load, layout_);
    const bool is_next = !group.empty() && position.base == first.base &&
                         position.offset == first.offset + static_cast<int64_t>(group.size() * sizeof(uint32_t));
    if (!is_next) {
      group = {load};
      first = position;
      continue;
    }
    group.push_back(load);
    if (group.size() < kMostMembers) continue;
    auto move = [&](Instruction* member) { return move_before(getPointerOperand(member), *group[0]); };
    if (shape_of_members(group) && all_of(drop_begin(group), move)) load_groups_[group[0]] = group;
    group.clear();
  }
}

// False if a member has been loaded already.
bool RunTimeShapes::load_group(ArrayRef<Instruction*> members, IRBuilder<>& builder) {
  std::optional<Shape> shape = shape_of_members(members);
  if (!shape || any_of(members, [&](Instruction* load) { return lanes_.known_vector(load) != nullptr; })) return false;
  auto scalarized = [&]() -> Values {
    Values results;
    for (Instruction* load : members) {
      lane_accesses_.load(cast<LoadInst>(*load), builder);
      results.push_back(lanes_.known_vector(load));
    }
    return results;
  };
  auto in_parts = [&](ArrayRef<Value*> addresses) -> Values {
    SmallVector<Values> parts(members.size());
    for (Value* address : addresses)
      for (auto [i, part] :
           enumerate(load_members(members, shape->part_lanes, address, getLoadStoreAlignment(members[0]), builder)))
        parts[i].push_back(part);
    Values results;
    for (auto [load, of_lanes] : zip_equal(members, parts))
      results.push_back(builder.CreateBitCast(concatenateVectors(builder, of_lanes), vector_of(load->getType())));
    return results;
  };
  auto otherwise = [&] {
    return shape->has_windows ? load_in_windows(members, *shape, builder, scalarized) : scalarized();
  };
  // Elements of lanes that are not active may be out of bounds.
  const bool may_load_all = shape->offset || is_all(lanes_.mask());
  const Values results = may_load_all ? emit_by_shape(*shape, builder, in_parts, otherwise) : otherwise();
  for (auto [load, lanes] : zip_equal(members, results)) lanes_.set_vector(load, lanes);
  return true;
}

// Whether an access may be one of a group: how its lanes lie is not known, and only words can be permuted.
bool RunTimeShapes::is_member(Instruction& access) {
  Type* type = getLoadStoreType(&access);
  Value* address = guarded_address_of(access).address;
  return lanes_.is_divergent(address) && !type->isPointerTy() && layout_.getTypeStoreSize(type) == sizeof(uint32_t) &&
         !strides_.stride_of(address) && !patterns_.pattern_of(address);
}

// Nothing between the stores of a group accesses memory but stores to other variables, so that all can be emitted with
// the last one.
void RunTimeShapes::find_stores(BasicBlock& block, function_ref<bool(Instruction&)> is_taken) {
  MapVector<const Value*, SmallVector<StoreInst*>> runs;  // by what they store to
  auto close_run = [&](ArrayRef<StoreInst*> left) {
    while (left.size() > 1) {
      std::optional<Butterfly> found;
      size_t size = std::min<size_t>(left.size(), 2 * kMostMembers);
      for (; size > 1; --size)
        if ((found = butterfly_of(left.take_front(size)))) break;
      if (found) {
        for (StoreInst* store : left.take_front(size).drop_back()) deferred_stores_.insert(store);
        butterflies_[left[size - 1]] = std::move(*found);
      }
      left = left.drop_front(found ? size : 1);
    }
  };
  auto close = [&] {
    for (const auto& [object, stores] : runs) close_run(stores);
    runs.clear();
  };
  for (Instruction& instruction : block) {
    auto* store = dyn_cast<StoreInst>(&instruction);
    if (!store) {
      if (instruction.mayReadOrWriteMemory() && !instruction.hasMetadata(LLVMContext::MD_invariant_load)) close();
      continue;
    }
    const bool can_join = store->isSimple() && !is_taken(*store) && is_member(*store);
    const Value* object = getUnderlyingObject(guarded_address_of(*store).address);
    const bool are_separate =
        isIdentifiedObject(object) && all_of(runs, [](const auto& run) { return isIdentifiedObject(run.first); });
    if (!can_join || (!are_separate && !(runs.size() == 1 && runs.count(object)))) close();
    if (can_join) runs[object].push_back(store);
  }
  close();
}

bool RunTimeShapes::store_group(StoreInst& store, function_ref<void(StoreInst&)> alone, IRBuilder<>& builder) {
  if (deferred_stores_.contains(&store)) return true;
  auto group = butterflies_.find(&store);
  if (group == butterflies_.end()) return false;
  const Butterfly& butterfly = group->second;
  if (!is_all(lanes_.mask()) && !lanes_of(lanes_.mask()).empty()) {
    SmallVector<Instruction*> stores(butterfly.low);
    append_range(stores, butterfly.high);
    llvm::sort(stores, [](const Instruction* a, const Instruction* b) { return a->comesBefore(b); });
    for (Instruction* one : stores) alone(cast<StoreInst>(*one));
  } else if (butterfly.high.empty()) {
    store_side(butterfly.low, false, builder);
  } else {
    store_butterfly(butterfly, builder);
  }
  return true;
}

// Interleaves the members if the lanes are consecutive.
void RunTimeShapes::store_side(ArrayRef<Instruction*> side, bool has_partner, IRBuilder<>& builder) {
  auto& first = cast<StoreInst>(*side[0]);
  auto scalarized = [&]() -> Values {
    for (Instruction* store : side) lane_accesses_.store(cast<StoreInst>(*store), builder);
    return {};
  };
  if (side.size() == 1) {
    if (!store_if_tested(first, has_partner, builder)) scalarized();
    return;
  }
  std::optional<Shape> shape = shape_of_members(side);
  if (!shape) {
    scalarized();
    return;
  }
  const unsigned width = shape->part_lanes, members = static_cast<unsigned>(side.size());
  auto in_parts = [&](ArrayRef<Value*> addresses) -> Values {
    Values values;
    for (Instruction* store : side) values.push_back(words_of(*store, builder));
    SmallVector<int> repeated;
    for (unsigned i = 0; i < width * members; ++i) repeated.push_back(static_cast<int>(i / members));
    for (auto [i, address] : enumerate(addresses)) {
      const auto lanes = createSequentialMask(static_cast<unsigned>(i) * width, width, 0);
      Values parts;
      for (Value* value : values) parts.push_back(builder.CreateShuffleVector(value, lanes));
      Value* all =
          builder.CreateShuffleVector(concatenateVectors(builder, parts), createInterleaveMask(width, members));
      if (is_all(lanes_.mask()) || !lanes_.can_mask(sizeof(uint32_t))) {
        builder.CreateAlignedStore(all, address, first.getAlign());
        continue;
      }
      Value* mask = builder.CreateShuffleVector(builder.CreateShuffleVector(lanes_.mask(), lanes), repeated);
      builder.CreateMaskedStore(all, address, first.getAlign(), mask);
    }
    return {};
  };
  emit_by_shape(*shape, builder, in_parts, scalarized);
}

void RunTimeShapes::store_butterfly(const Butterfly& butterfly, IRBuilder<>& builder) {
  auto each_side = [&]() -> Values {
    // In the order of the thread's code, should their addresses be the same.
    const bool is_swapped = butterfly.high[0]->comesBefore(butterfly.low[0]);
    store_side(is_swapped ? butterfly.high : butterfly.low, true, builder);
    store_side(is_swapped ? butterfly.low : butterfly.high, true, builder);
    return {};
  };
  std::optional<Shape> low = shape_of_members(butterfly.low), high = shape_of_members(butterfly.high);
  // Without masks a window's elements are written as they were read, which must be the threadgroup's own and in bounds.
  const bool has_masks = is_all(lanes_.mask()) || isa_.has_mask_registers;
  if (!low || !high || low->part_lanes != isa_.num_words() ||
      (!has_masks && !(low->has_windows && high->has_windows))) {
    each_side();
    return;
  }
  ++num_tested_;
  const unsigned width = low->part_lanes, size = kWindowRegisters * width;
  Windows windows = windows_of(*low, builder);
  Value *condition = windows.condition, *distance = builder.CreateZExt(windows.distance, builder.getInt64Ty());
  auto require = [&](Value* what) { condition = what ? builder.CreateAnd(condition, what) : condition; };
  // The first element is the first lane's.
  for (Value* places : windows.places)
    require(builder.CreateICmpEQ(builder.CreateExtractElement(places, uint64_t{0}), builder.getInt32(0)));
  Values high_bases = windows.bases;
  require(extended(low->address, peeled(low->address).added, windows.bases, size, true, builder));
  require(extended(high->address, peeled(high->address).added, high_bases, size, true, builder));
  Value* last = builder.getInt64(size - 1);
  Value* high_last = builder.CreateSub(last, distance);
  require(are_in_bounds(*low, windows.bases, last, builder));
  for (const Shape& other : low->others) require(are_in_bounds(other, windows.bases, last, builder));
  require(are_in_bounds(*high, high_bases, high_last, builder));
  for (const Shape& other : high->others) require(are_in_bounds(other, high_bases, high_last, builder));
  const Values addresses = addresses_of(*low, windows.bases, builder);
  Value* bytes = builder.CreateMul(distance, builder.getInt64(low->bytes));
  for (auto [first, second] : zip_equal(addresses, addresses_of(*high, high_bases, builder)))
    require(builder.CreateICmpEQ(builder.CreateGEP(builder.getInt8Ty(), first, bytes), second));

  auto in_windows = [&]() -> Values {
    const auto members = static_cast<unsigned>(butterfly.low.size());
    Type* words = FixedVectorType::get(builder.getInt32Ty(), width);
    Value* inserted = builder.CreateVectorSplat(width, windows.distance);
    Value* below = builder.CreateSub(inserted, ConstantInt::get(words, 1));
    Value* active =
        is_all(lanes_.mask()) ? nullptr : builder.CreateSExt(lanes_.mask(), vector_of(builder.getInt32Ty()));
    SmallVector<std::pair<Value*, Value*>> values;
    for (auto [one, other] : zip_equal(butterfly.low, butterfly.high))
      values.emplace_back(words_of(*one, builder), words_of(*other, builder));
    for (unsigned i = 0; i < kWindowRegisters * members; ++i) {
      // Each element's number, and the register and lane that it comes from.
      SmallVector<Constant*> of_elements;
      for (unsigned k = i * width; k < (i + 1) * width; ++k) of_elements.push_back(builder.getInt32(k / members));
      Value* numbers = ConstantVector::get(of_elements);
      Value* is_high = builder.CreateICmpNE(builder.CreateAnd(numbers, inserted), Constant::getNullValue(words));
      Value* sources = builder.CreateOr(
          with_bit_removed(numbers, below, builder),
          builder.CreateSelect(is_high, ConstantInt::get(words, width), Constant::getNullValue(words)));
      for (auto [part, address] : enumerate(addresses)) {
        const auto lanes = createSequentialMask(static_cast<unsigned>(part) * width, width, 0);
        Value* stored = nullptr;
        for (auto [member, sides] : enumerate(values)) {
          Value* pair[] = {builder.CreateShuffleVector(sides.first, lanes),
                           builder.CreateShuffleVector(sides.second, lanes)};
          Value* one = taken(pair, sources, builder);
          SmallVector<int> blend;
          for (unsigned k = 0; k < width; ++k) blend.push_back(static_cast<int>(k % members < member ? k : width + k));
          stored = stored ? builder.CreateShuffleVector(stored, one, blend) : one;
        }
        Value* mask = nullptr;
        if (active) {
          Value* moved = isa_.permute_register(builder.CreateShuffleVector(active, lanes), sources, builder);
          mask = builder.CreateICmpNE(moved, Constant::getNullValue(words));
        }
        store_words(stored, builder.CreateConstGEP1_64(words, address, i), mask, kWindowAlignment, builder);
      }
    }
    return {};
  };
  lanes_.create_if_else({condition, "butterfly", "sides", false}, builder, in_windows, each_side);
}

}  // namespace kiln::widening
