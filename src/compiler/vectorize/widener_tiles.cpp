// Loads and stores of matrices, whose lanes are at eight rows in memory, a few lanes at each: an access for each row,
// and permutations, where lane by lane there would be 64 accesses.
//
// A thread has two elements of a matrix. Their accesses are joined where they are a known distance apart: only then is
// all that a row's access touches some lane's own. What lies between rows may be known when the code runs only.
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>

#include <algorithm>
#include <tuple>

#include "compiler/ir/code_motion.h"
#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/vectorize/widener.h"

namespace kiln::widening {

namespace {

constexpr uint64_t kFarthest = 1 << 16;
constexpr unsigned kMostStrips = 8;

}  // namespace

std::optional<Widener::Places> Widener::sum_of(const std::optional<Places>& one, const std::optional<Places>& other) {
  if (!one || !other || (one->pitch && other->pitch && one->pitch != other->pitch)) return std::nullopt;
  Places sum = *one;
  if (!sum.pitch) sum.pitch = other->pitch;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    sum.offsets[lane] += other->offsets[lane];
    sum.rows[lane] += other->rows[lane];
  }
  return sum;
}

std::optional<Widener::Places> Widener::product_of(const std::optional<Places>& places, uint64_t factor) {
  if (!places || factor > kFarthest) return std::nullopt;
  Places product = *places;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    product.offsets[lane] *= factor;
    product.rows[lane] *= factor;
    if (product.offsets[lane] > kFarthest || product.rows[lane] > kFarthest) return std::nullopt;
  }
  return product;
}

// Of an address or a number of 64 bits.
std::optional<Widener::Places> Widener::places_of(Value* value, unsigned depth) {
  if (!is_divergent(value)) return Places{};
  if (depth > 12) return std::nullopt;
  if (auto values = values_of(value)) {
    Places places;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if ((*values)[lane].ugt(kFarthest)) return std::nullopt;
      places.offsets[lane] = (*values)[lane].getZExtValue();
    }
    return places;
  }
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction) return std::nullopt;
  auto of = [&](unsigned i) { return places_of(instruction->getOperand(i), depth + 1); };
  auto same_in_all = [&](unsigned i) { return !is_divergent(instruction->getOperand(i)); };
  if (isa<ZExtInst, SExtInst>(instruction)) {
    Value* narrow = instruction->getOperand(0);
    if (!is_certain(value)) return std::nullopt;
    std::optional<Pattern> pattern = pattern_of(narrow);
    if (!pattern) return std::nullopt;
    Places places;
    places.offsets = pattern->offsets;
    return places;
  }
  if (!instruction->getType()->isPointerTy() && !instruction->getType()->isIntegerTy(64)) return std::nullopt;
  switch (instruction->getOpcode()) {
    case Instruction::PtrToInt:
    case Instruction::IntToPtr: return of(0);
    case Instruction::Or:
      if (!cast<PossiblyDisjointInst>(instruction)->isDisjoint()) return std::nullopt;
      [[fallthrough]];
    case Instruction::Add: return sum_of(of(0), of(1));
    case Instruction::Sub: return same_in_all(1) ? of(0) : std::nullopt;
    case Instruction::Shl: {
      auto* by = dyn_cast<ConstantInt>(instruction->getOperand(1));
      return by && by->getZExtValue() <= 16 ? product_of(of(0), uint64_t{1} << by->getZExtValue()) : std::nullopt;
    }
    case Instruction::Mul: {
      if (!same_in_all(0) && !same_in_all(1)) return std::nullopt;
      unsigned factor = same_in_all(1) ? 1 : 0;
      std::optional<Places> places = of(1 - factor);
      if (auto* known = dyn_cast<ConstantInt>(instruction->getOperand(factor)))
        return product_of(places, known->getValue().getLimitedValue());
      if (!places || places->pitch) return std::nullopt;
      std::swap(places->offsets, places->rows);
      places->pitch = instruction->getOperand(factor);
      return places;
    }
    case Instruction::GetElementPtr: {
      std::optional<Places> sum = of(0);
      auto level = gep_type_begin(instruction);
      for (unsigned i = 1; i < instruction->getNumOperands(); ++i, ++level) {
        if (same_in_all(i)) continue;
        if (layout_.getTypeSizeInBits(instruction->getOperand(i)->getType()) != 64) return std::nullopt;
        sum = sum_of(sum, product_of(of(i), level.getSequentialElementStride(layout_)));
      }
      return sum;
    }
    default: return std::nullopt;
  }
}

// Nothing where lanes grow alike: such accesses are rows.
std::optional<Widener::Places> Widener::places_of_access(Instruction& access) {
  Value* pointer = getLoadStorePointerOperand(&access);
  Type* type = getLoadStoreType(&access);
  bool is_simple = isa<LoadInst>(access) ? cast<LoadInst>(access).isSimple() : cast<StoreInst>(access).isSimple();
  uint64_t bytes = layout_.getTypeStoreSize(type);
  if (!is_simple || type->isIntegerTy(1) || bytes != layout_.getTypeAllocSize(type) || bytes > 8) return std::nullopt;
  Value *allowed = nullptr, *address = pointer;
  if (auto* choice = dyn_cast<SelectInst>(pointer)) {
    allowed = choice->getCondition();
    address = choice->getTrueValue();
    if (!isa<LoadInst>(access) ? !is_sink(choice->getFalseValue()) : !guarded(pointer)) return std::nullopt;
  }
  if (!is_divergent(address) || stride_of(address)) return std::nullopt;
  std::optional<Places> places = places_of(address);
  if (!places || !allowed || !is_divergent(allowed)) return places;
  auto* comparison = dyn_cast<ICmpInst>(allowed);
  if (!comparison || comparison->getPredicate() != ICmpInst::ICMP_ULT || is_divergent(comparison->getOperand(1)) ||
      places_of(comparison->getOperand(0)) != places)
    return std::nullopt;
  return places;
}

// Of lanes' elements those that follow one another are a strip; all strips are as long, and no two elements are the
// same.
bool Widener::make_tile(ArrayRef<Instruction*> accesses, ArrayRef<Places> places, Tile& tile) {
  tile.accesses.assign(accesses.begin(), accesses.end());
  tile.bytes = layout_.getTypeStoreSize(getLoadStoreType(accesses[0]));
  tile.is_certain = !places[0].pitch;
  struct Element {
    uint64_t row, offset;
    unsigned access, lane;
  };
  SmallVector<Element> elements;
  for (auto [access, of] : enumerate(places))
    for (unsigned lane = 0; lane < kLanes; ++lane)
      elements.push_back({of.rows[lane], of.offsets[lane], static_cast<unsigned>(access), lane});
  llvm::sort(elements, [](const Element& one, const Element& other) {
    return std::tie(one.row, one.offset) < std::tie(other.row, other.offset);
  });
  tile.strips.clear();
  for (size_t i = 0; i < elements.size(); ++i) {
    const Element& element = elements[i];
    bool goes_on = i > 0 && element.row == elements[i - 1].row;
    if (goes_on && element.offset == elements[i - 1].offset) return false;
    if (!goes_on || element.offset != elements[i - 1].offset + tile.bytes)
      tile.strips.push_back({element.access, element.lane, {}});
    if (tile.strips.size() > kMostStrips) return false;
    tile.strips.back().elements.push_back(element.access * kLanes + element.lane);
  }
  size_t length = tile.strips[0].elements.size();
  return isPowerOf2_64(length) && isPowerOf2_64(tile.strips.size()) &&
         all_of(tile.strips, [&](const Strip& strip) { return strip.elements.size() == length; });
}

void Widener::find_tiles(ScalarEvolution& evolution) {
  for (BasicBlock& block : from_) {
    Instruction* first = nullptr;
    std::optional<Places> places;
    auto alone = [&] {
      Tile tile;
      if (first && make_tile({first}, {*places}, tile)) tiles_[first] = tile;
      first = nullptr;
    };
    // With the access before it, if they are a known number of elements apart.
    auto join = [&](Instruction& second, const Places& others) {
      if (!first || second.getOpcode() != first->getOpcode() || getLoadStoreType(&second) != getLoadStoreType(first) ||
          others != *places)
        return false;
      auto address_of = [](Instruction& access) {
        Value* pointer = getLoadStorePointerOperand(&access);
        auto* choice = dyn_cast<SelectInst>(pointer);
        return choice ? choice->getTrueValue() : pointer;
      };
      auto guard_of = [](Instruction& access) { return dyn_cast<SelectInst>(getLoadStorePointerOperand(&access)); };
      uint64_t bytes = layout_.getTypeStoreSize(getLoadStoreType(first));
      std::optional<int64_t> apart = distance(address_of(*first), address_of(second), bytes, evolution);
      if (!apart || *apart <= 0 || *apart > static_cast<int64_t>(kFarthest)) return false;
      SelectInst *guard = guard_of(*first), *other = guard_of(second);
      if ((guard == nullptr) != (other == nullptr)) return false;
      if (guard && guard->getCondition() != other->getCondition()) {
        auto *one = dyn_cast<ICmpInst>(guard->getCondition()), *two = dyn_cast<ICmpInst>(other->getCondition());
        if (!one || !two || one->getPredicate() != ICmpInst::ICMP_ULT || two->getPredicate() != ICmpInst::ICMP_ULT ||
            one->getOperand(1) != two->getOperand(1) ||
            distance(one->getOperand(0), two->getOperand(0), bytes, evolution) != apart)
          return false;
      }
      Places moved = others;
      for (uint64_t& offset : moved.offsets) offset += static_cast<uint64_t>(*apart) * bytes;
      Tile tile;
      if (!make_tile({first, &second}, {*places, moved}, tile)) return false;
      if (isa<LoadInst>(second)) {
        if (!move_before(getLoadStorePointerOperand(&second), *first)) return false;
        tiles_[first] = tile;
      } else {
        tiles_[&second] = tile;
        stored_in_tiles_.insert(first);
      }
      first = nullptr;
      return true;
    };
    for (Instruction& instruction : make_early_inc_range(block)) {
      bool is_access = isa<LoadInst, StoreInst>(instruction);
      std::optional<Places> found;
      if (is_access) found = places_of_access(instruction);
      if (found && join(instruction, *found)) continue;
      if (found || instruction.mayWriteToMemory() ||
          (first && isa<StoreInst>(first) && instruction.mayReadOrWriteMemory()))
        alone();
      if (found) {
        first = &instruction;
        places = found;
      }
    }
    alone();
  }
}

// Whether guards let all of it through, and the lanes are all here.
Value* Widener::tile_is_there(const Tile& tile, IRBuilder<>& builder) {
  Value* there = builder.getTrue();
  if (!is_all(mask_))
    there = builder.CreateICmpEQ(builder.CreateBitCast(mask_, builder.getInt32Ty()), builder.getInt32(-1));
  uint64_t reach = (tile.strips[0].elements.size() - 1) * tile.bytes;
  auto ask = [&](const Strip& strip) {
    auto* choice = dyn_cast<SelectInst>(getLoadStorePointerOperand(tile.accesses[strip.access]));
    if (!choice) return;
    Value* allowed = choice->getCondition();
    if (!is_divergent(allowed)) {
      there = builder.CreateAnd(there, scalar(allowed));
      return;
    }
    auto* comparison = cast<ICmpInst>(allowed);
    Value* least =
        builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, scalar(comparison->getOperand(1)), builder.getInt64(reach));
    Value* offset = at_lane(comparison->getOperand(0), strip.lane, builder);
    there = builder.CreateAnd(there, builder.CreateICmpULT(offset, least));
  };
  // Where the first and the last one are within an array, so are those between, whose distances are known.
  if (tile.is_certain) {
    ask(tile.strips.front());
    ask(tile.strips.back());
  } else {
    for (const Strip& strip : tile.strips) ask(strip);
  }
  return there;
}

Widener::Values Widener::by_tile(const Tile& tile, IRBuilder<>& builder, Maker together, Maker apart) {
  Value* there = tile_is_there(tile, builder);
  if (auto* known = dyn_cast<ConstantInt>(there); known && known->isOne()) return together();
  return either({there, "tile", "lanes"}, builder, together, apart);
}

void Widener::load_tile(const Tile& tile, IRBuilder<>& builder) {
  Type* element = getLoadStoreType(tile.accesses[0]);
  size_t length = tile.strips[0].elements.size();
  auto address = [&](const Strip& strip) {
    Value* pointer = getLoadStorePointerOperand(tile.accesses[strip.access]);
    auto* choice = dyn_cast<SelectInst>(pointer);
    return at_lane(choice ? choice->getTrueValue() : pointer, strip.lane, builder);
  };
  auto together = [&]() -> Values {
    Values strips;
    for (const Strip& strip : tile.strips)
      strips.push_back(builder.CreateAlignedLoad(FixedVectorType::get(element, static_cast<unsigned>(length)),
                                                 address(strip), getLoadStoreAlignment(tile.accesses[strip.access])));
    Value* all = concatenateVectors(builder, strips);
    Values results;
    for (unsigned access = 0; access < tile.accesses.size(); ++access) {
      SmallVector<int> sources(kLanes);
      for (auto [i, strip] : enumerate(tile.strips))
        for (auto [j, place] : enumerate(strip.elements))
          if (place / kLanes == access) sources[place % kLanes] = static_cast<int>(i * length + j);
      results.push_back(builder.CreateShuffleVector(all, sources));
    }
    return results;
  };
  auto apart = [&]() -> Values {
    Values results;
    for (Instruction* access : tile.accesses) {
      widen_load_scalarized(cast<LoadInst>(*access), builder);
      results.push_back(vectors_[access]);
    }
    return results;
  };
  for (auto [access, result] : zip_equal(tile.accesses, by_tile(tile, builder, together, apart)))
    vectors_[access] = result;
}

void Widener::store_tile(const Tile& tile, IRBuilder<>& builder) {
  auto together = [&]() -> Values {
    Values values;
    for (Instruction* access : tile.accesses)
      values.push_back(vector(cast<StoreInst>(access)->getValueOperand(), builder));
    Value* all = concatenateVectors(builder, values);
    for (const Strip& strip : tile.strips) {
      auto& store = cast<StoreInst>(*tile.accesses[strip.access]);
      auto* choice = dyn_cast<SelectInst>(store.getPointerOperand());
      Value* address = at_lane(choice ? choice->getTrueValue() : store.getPointerOperand(), strip.lane, builder);
      SmallVector<int> sources(strip.elements.begin(), strip.elements.end());
      builder.CreateAlignedStore(builder.CreateShuffleVector(all, sources), address, store.getAlign());
    }
    return {};
  };
  auto apart = [&]() -> Values {
    for (Instruction* access : tile.accesses) widen_store_alone(cast<StoreInst>(*access), builder);
    return {};
  };
  by_tile(tile, builder, together, apart);
}

}  // namespace kiln::widening
