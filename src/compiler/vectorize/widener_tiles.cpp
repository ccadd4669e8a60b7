#include "compiler/vectorize/widener_tiles.h"

#include <llvm/Analysis/VectorUtils.h>

#include <algorithm>
#include <tuple>

#include "compiler/ir/code_motion.h"
#include "compiler/vectorize/widener_access_groups.h"

namespace kiln::widening {

namespace {

constexpr unsigned kMaxStrips = 8;

}  // namespace

// Consecutive elements of lanes are a strip. All strips must be equally long, and all elements distinct.
bool Tiles::make_tile(ArrayRef<Instruction*> accesses, ArrayRef<LaneOffsets> lane_offsets, Tile& tile) const {
  tile.accesses.assign(accesses.begin(), accesses.end());
  tile.bytes = layout_.getTypeStoreSize(getLoadStoreType(accesses[0]));
  tile.has_constant_distances = !lane_offsets[0].pitch;
  struct Element {
    uint64_t row, offset;
    unsigned access, lane;
  };
  SmallVector<Element> elements;
  for (auto [access, of] : enumerate(lane_offsets))
    for (unsigned lane = 0; lane < kLanes; ++lane)
      elements.push_back({of.rows[lane], of.offsets[lane], static_cast<unsigned>(access), lane});
  llvm::sort(elements, [](const Element& one, const Element& other) {
    return std::tie(one.row, one.offset) < std::tie(other.row, other.offset);
  });
  tile.strips.clear();
  for (size_t i = 0; i < elements.size(); ++i) {
    const Element& element = elements[i];
    bool continues_row = i > 0 && element.row == elements[i - 1].row;
    if (continues_row && element.offset == elements[i - 1].offset) return false;
    if (!continues_row || element.offset != elements[i - 1].offset + tile.bytes)
      tile.strips.push_back({element.access, element.lane, {}});
    if (tile.strips.size() > kMaxStrips) return false;
    tile.strips.back().elements.push_back(element.access * kLanes + element.lane);
  }
  size_t length = tile.strips[0].elements.size();
  return isPowerOf2_64(length) && isPowerOf2_64(tile.strips.size()) &&
         all_of(tile.strips, [&](const Strip& strip) { return strip.elements.size() == length; });
}

void Tiles::find(Function& from) {
  for (BasicBlock& block : from) {
    Instruction* first = nullptr;
    std::optional<LaneOffsets> lane_offsets;
    auto make_single = [&] {
      Tile tile;
      if (first && make_tile({first}, {*lane_offsets}, tile)) tiles_[first] = tile;
      first = nullptr;
    };
    // Joins it with the previous access, if they are at a constant distance.
    auto join = [&](Instruction& second, const LaneOffsets& others) {
      if (!first || second.getOpcode() != first->getOpcode() || getLoadStoreType(&second) != getLoadStoreType(first) ||
          others != *lane_offsets)
        return false;
      auto address_of = [](Instruction& access) {
        Value* pointer = getLoadStorePointerOperand(&access);
        auto* select = dyn_cast<SelectInst>(pointer);
        return select ? select->getTrueValue() : pointer;
      };
      auto guard_of = [](Instruction& access) { return dyn_cast<SelectInst>(getLoadStorePointerOperand(&access)); };
      uint64_t bytes = layout_.getTypeStoreSize(getLoadStoreType(first));
      std::optional<int64_t> gap = distance(address_of(*first), address_of(second), bytes, evolution_);
      if (!gap || *gap <= 0 || *gap > static_cast<int64_t>(kMaxTileOffset)) return false;
      SelectInst *guard = guard_of(*first), *other = guard_of(second);
      if ((guard == nullptr) != (other == nullptr)) return false;
      if (guard && guard->getCondition() != other->getCondition()) {
        auto *one = dyn_cast<ICmpInst>(guard->getCondition()), *two = dyn_cast<ICmpInst>(other->getCondition());
        if (!one || !two || one->getPredicate() != ICmpInst::ICMP_ULT || two->getPredicate() != ICmpInst::ICMP_ULT ||
            one->getOperand(1) != two->getOperand(1) ||
            distance(one->getOperand(0), two->getOperand(0), bytes, evolution_) != gap)
          return false;
      }
      LaneOffsets moved = others;
      for (uint64_t& offset : moved.offsets) offset += static_cast<uint64_t>(*gap) * bytes;
      Tile tile;
      if (!make_tile({first, &second}, {*lane_offsets, moved}, tile)) return false;
      if (isa<LoadInst>(second)) {
        if (!move_before(getLoadStorePointerOperand(&second), *first)) return false;
        tiles_[first] = tile;
      } else {
        tiles_[&second] = tile;
        deferred_.insert(first);
      }
      first = nullptr;
      return true;
    };
    for (Instruction& instruction : make_early_inc_range(block)) {
      bool is_access = isa<LoadInst, StoreInst>(instruction);
      std::optional<LaneOffsets> found;
      if (is_access) found = tile_addresses_.lane_offsets_of_access(instruction);
      if (found && join(instruction, *found)) continue;
      if (found || instruction.mayWriteToMemory() ||
          (first && isa<StoreInst>(first) && instruction.mayReadOrWriteMemory()))
        make_single();
      if (found) {
        first = &instruction;
        lane_offsets = found;
      }
    }
    make_single();
  }
}

// Whether guards allow all of it, and all lanes are active.
Value* Tiles::check_bounds(const Tile& tile, IRBuilder<>& builder) {
  Value* in_bounds = is_all(lanes_.mask()) ? builder.getTrue() : lanes_.all_active(builder);
  uint64_t reach = (tile.strips[0].elements.size() - 1) * tile.bytes;
  auto check_strip = [&](const Strip& strip) {
    auto* select = dyn_cast<SelectInst>(getLoadStorePointerOperand(tile.accesses[strip.access]));
    if (!select) return;
    Value* allowed = select->getCondition();
    if (!lanes_.is_divergent(allowed)) {
      in_bounds = builder.CreateAnd(in_bounds, lanes_.scalar(allowed));
      return;
    }
    auto* comparison = cast<ICmpInst>(allowed);
    Value* reduced = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, lanes_.scalar(comparison->getOperand(1)),
                                                   builder.getInt64(reach));
    Value* offset = lane_scalars_.at_lane(comparison->getOperand(0), strip.lane, builder);
    in_bounds = builder.CreateAnd(in_bounds, builder.CreateICmpULT(offset, reduced));
  };
  // If the first and the last strip are in bounds, so are those between, whose distances are known.
  if (tile.has_constant_distances) {
    check_strip(tile.strips.front());
    check_strip(tile.strips.back());
  } else {
    for (const Strip& strip : tile.strips) check_strip(strip);
  }
  return in_bounds;
}

Values Tiles::emit(const Tile& tile, IRBuilder<>& builder, Emitter vectorized, Emitter scalarized) {
  Value* in_bounds = check_bounds(tile, builder);
  if (auto* known = dyn_cast<ConstantInt>(in_bounds); known && known->isOne()) return vectorized();
  return lanes_.create_if_else({in_bounds, "tile", "lanes"}, builder, vectorized, scalarized);
}

bool Tiles::load(LoadInst& load, IRBuilder<>& builder) {
  auto found = tiles_.find(&load);
  if (found == tiles_.end()) return false;
  const Tile& tile = found->second;
  Type* element = getLoadStoreType(tile.accesses[0]);
  size_t length = tile.strips[0].elements.size();
  auto address = [&](const Strip& strip) {
    Value* pointer = getLoadStorePointerOperand(tile.accesses[strip.access]);
    auto* select = dyn_cast<SelectInst>(pointer);
    return lane_scalars_.at_lane(select ? select->getTrueValue() : pointer, strip.lane, builder);
  };
  auto vectorized = [&]() -> Values {
    Values strips;
    for (const Strip& strip : tile.strips)
      strips.push_back(builder.CreateAlignedLoad(FixedVectorType::get(element, static_cast<unsigned>(length)),
                                                 address(strip), getLoadStoreAlignment(tile.accesses[strip.access])));
    Value* all = concatenateVectors(builder, strips);
    Values results;
    for (unsigned access = 0; access < tile.accesses.size(); ++access) {
      SmallVector<int> sources(kLanes);
      for (auto [i, strip] : enumerate(tile.strips))
        for (auto [j, index] : enumerate(strip.elements))
          if (index / kLanes == access) sources[index % kLanes] = static_cast<int>(i * length + j);
      results.push_back(builder.CreateShuffleVector(all, sources));
    }
    return results;
  };
  auto scalarized = [&]() -> Values {
    Values results;
    for (Instruction* access : tile.accesses) {
      lane_accesses_.load(cast<LoadInst>(*access), builder);
      results.push_back(lanes_.known_vector(access));
    }
    return results;
  };
  for (auto [access, result] : zip_equal(tile.accesses, emit(tile, builder, vectorized, scalarized)))
    lanes_.set_vector(access, result);
  return true;
}

bool Tiles::store(StoreInst& store, IRBuilder<>& builder, function_ref<void(StoreInst&)> store_single) {
  auto found = tiles_.find(&store);
  if (found == tiles_.end()) return false;
  const Tile& tile = found->second;
  auto vectorized = [&]() -> Values {
    Values values;
    for (Instruction* access : tile.accesses)
      values.push_back(lanes_.vector(cast<StoreInst>(access)->getValueOperand(), builder));
    Value* all = concatenateVectors(builder, values);
    for (const Strip& strip : tile.strips) {
      auto& first = cast<StoreInst>(*tile.accesses[strip.access]);
      auto* select = dyn_cast<SelectInst>(first.getPointerOperand());
      Value* address =
          lane_scalars_.at_lane(select ? select->getTrueValue() : first.getPointerOperand(), strip.lane, builder);
      SmallVector<int> sources(strip.elements.begin(), strip.elements.end());
      builder.CreateAlignedStore(builder.CreateShuffleVector(all, sources), address, first.getAlign());
    }
    return {};
  };
  auto scalarized = [&]() -> Values {
    for (Instruction* access : tile.accesses) store_single(cast<StoreInst>(*access));
    return {};
  };
  emit(tile, builder, vectorized, scalarized);
  return true;
}

}  // namespace kiln::widening
