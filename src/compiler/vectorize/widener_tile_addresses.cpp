#include "compiler/vectorize/widener_tile_addresses.h"

#include <llvm/IR/GetElementPtrTypeIterator.h>

#include "compiler/ir/guard_sinks.h"
#include "compiler/vectorize/widener_guards.h"
#include "compiler/vectorize/widener_lane_values.h"

namespace kiln::widening {

static std::optional<LaneOffsets> sum_of(const std::optional<LaneOffsets>& one,
                                         const std::optional<LaneOffsets>& other) {
  if (!one || !other || (one->pitch && other->pitch && one->pitch != other->pitch)) return std::nullopt;
  LaneOffsets sum = *one;
  if (!sum.pitch) sum.pitch = other->pitch;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    sum.offsets[lane] += other->offsets[lane];
    sum.rows[lane] += other->rows[lane];
  }
  return sum;
}

static std::optional<LaneOffsets> product_of(const std::optional<LaneOffsets>& lane_offsets, uint64_t factor) {
  if (!lane_offsets || factor > kMaxTileOffset) return std::nullopt;
  LaneOffsets product = *lane_offsets;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    product.offsets[lane] *= factor;
    product.rows[lane] *= factor;
    if (product.offsets[lane] > kMaxTileOffset || product.rows[lane] > kMaxTileOffset) return std::nullopt;
  }
  return product;
}

std::optional<LaneOffsets> TileAddresses::lane_offsets_of(Value* value, unsigned depth) {
  if (!flow_.is_divergent(value)) return LaneOffsets{};
  if (depth > 12) return std::nullopt;
  if (auto values = values_of(value)) {
    LaneOffsets lane_offsets;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if ((*values)[lane].ugt(kMaxTileOffset)) return std::nullopt;
      lane_offsets.offsets[lane] = (*values)[lane].getZExtValue();
    }
    return lane_offsets;
  }
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction) return std::nullopt;
  auto of = [&](unsigned i) { return lane_offsets_of(instruction->getOperand(i), depth + 1); };
  auto is_uniform = [&](unsigned i) { return !flow_.is_divergent(instruction->getOperand(i)); };
  if (isa<ZExtInst, SExtInst>(instruction)) {
    Value* narrow = instruction->getOperand(0);
    if (!wrapping_.never_wraps(value)) return std::nullopt;
    std::optional<Pattern> pattern = patterns_.pattern_of(narrow);
    if (!pattern) return std::nullopt;
    LaneOffsets lane_offsets;
    lane_offsets.offsets = pattern->offsets;
    return lane_offsets;
  }
  if (!instruction->getType()->isPointerTy() && !instruction->getType()->isIntegerTy(64)) return std::nullopt;
  switch (instruction->getOpcode()) {
    case Instruction::PtrToInt:
    case Instruction::IntToPtr: return of(0);
    case Instruction::Or:
      if (!cast<PossiblyDisjointInst>(instruction)->isDisjoint()) return std::nullopt;
      [[fallthrough]];
    case Instruction::Add: return sum_of(of(0), of(1));
    case Instruction::Sub: return is_uniform(1) ? of(0) : std::nullopt;
    case Instruction::Shl: {
      auto* by = dyn_cast<ConstantInt>(instruction->getOperand(1));
      return by && by->getZExtValue() <= 16 ? product_of(of(0), uint64_t{1} << by->getZExtValue()) : std::nullopt;
    }
    case Instruction::Mul: {
      if (!is_uniform(0) && !is_uniform(1)) return std::nullopt;
      unsigned factor = is_uniform(1) ? 1 : 0;
      std::optional<LaneOffsets> lane_offsets = of(1 - factor);
      if (auto* known = dyn_cast<ConstantInt>(instruction->getOperand(factor)))
        return product_of(lane_offsets, known->getValue().getLimitedValue());
      if (!lane_offsets || lane_offsets->pitch) return std::nullopt;
      std::swap(lane_offsets->offsets, lane_offsets->rows);
      lane_offsets->pitch = instruction->getOperand(factor);
      return lane_offsets;
    }
    case Instruction::GetElementPtr: {
      std::optional<LaneOffsets> sum = of(0);
      auto level = gep_type_begin(instruction);
      for (unsigned i = 1; i < instruction->getNumOperands(); ++i, ++level) {
        if (is_uniform(i)) continue;
        if (layout_.getTypeSizeInBits(instruction->getOperand(i)->getType()) != 64) return std::nullopt;
        sum = sum_of(sum, product_of(of(i), level.getSequentialElementStride(layout_)));
      }
      return sum;
    }
    default: return std::nullopt;
  }
}

std::optional<LaneOffsets> TileAddresses::lane_offsets_of_access(Instruction& access) {
  Value* pointer = getLoadStorePointerOperand(&access);
  Type* type = getLoadStoreType(&access);
  bool is_simple = isa<LoadInst>(access) ? cast<LoadInst>(access).isSimple() : cast<StoreInst>(access).isSimple();
  uint64_t bytes = layout_.getTypeStoreSize(type);
  if (!is_simple || type->isIntegerTy(1) || bytes != layout_.getTypeAllocSize(type) || bytes > 8) return std::nullopt;
  Value *allowed = nullptr, *address = pointer;
  if (auto* select = dyn_cast<SelectInst>(pointer)) {
    allowed = select->getCondition();
    address = select->getTrueValue();
    if (!isa<LoadInst>(access) ? !is_sink(select->getFalseValue()) : !guarded(pointer)) return std::nullopt;
  }
  if (!flow_.is_divergent(address) || strides_.stride_of(address)) return std::nullopt;
  std::optional<LaneOffsets> lane_offsets = lane_offsets_of(address);
  if (!lane_offsets || !allowed || !flow_.is_divergent(allowed)) return lane_offsets;
  auto* comparison = dyn_cast<ICmpInst>(allowed);
  if (!comparison || comparison->getPredicate() != ICmpInst::ICMP_ULT ||
      !comparison->getOperand(0)->getType()->isIntegerTy(64) || flow_.is_divergent(comparison->getOperand(1)) ||
      lane_offsets_of(comparison->getOperand(0)) != lane_offsets)
    return std::nullopt;
  return lane_offsets;
}

}  // namespace kiln::widening
