#include "compiler/vectorize/widener_compressed.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

#include "compiler/vectorize/widener_guards.h"
#include "compiler/vectorize/widener_lane_values.h"

namespace kiln::widening {

using namespace llvm::PatternMatch;

// Operations in a row between a count and an address.
static constexpr unsigned kRankDepth = 16;

// The votes that are counted below each lane, and the distance of the values of lanes whose counts differ by one.
std::optional<CompressedStores::Rank> CompressedStores::rank_of(Value* value, unsigned depth) const {
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || depth > kRankDepth) return std::nullopt;
  Value *votes, *below;
  if (match(instruction, m_Intrinsic<Intrinsic::ctpop>(m_c_And(m_Value(votes), m_Value(below))))) {
    if (lanes_.is_divergent(votes)) std::swap(votes, below);
    if (lanes_.is_divergent(votes) || votes->getType()->getIntegerBitWidth() < kLanes) return std::nullopt;
    std::optional<std::array<APInt, kLanes>> masks = values_of(below);
    if (!masks) return std::nullopt;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      if ((*masks)[lane] != APInt::getLowBitsSet(below->getType()->getIntegerBitWidth(), lane)) return std::nullopt;
    return Rank{votes, 1};
  }
  auto of = [&](unsigned i) { return rank_of(instruction->getOperand(i), depth + 1); };
  auto is_uniform = [&](unsigned i) { return !lanes_.is_divergent(instruction->getOperand(i)); };
  auto times = [](std::optional<Rank> rank, uint64_t factor) -> std::optional<Rank> {
    if (rank) rank->distance *= factor;
    return rank && factor != 0 && rank->distance <= kLanes ? rank : std::nullopt;
  };
  switch (instruction->getOpcode()) {
    case Instruction::ZExt:
    case Instruction::SExt:
    case Instruction::Trunc:
    case Instruction::PtrToInt: return of(0);
    case Instruction::Add: return is_uniform(1) ? of(0) : is_uniform(0) ? of(1) : std::nullopt;
    case Instruction::Sub: return is_uniform(1) ? of(0) : std::nullopt;
    case Instruction::Mul:
    case Instruction::Shl: {
      auto* by = dyn_cast<ConstantInt>(instruction->getOperand(1));
      if (!by || by->getValue().uge(kLanes)) return std::nullopt;
      const uint64_t number = by->getZExtValue();
      return times(of(0), instruction->getOpcode() == Instruction::Shl ? uint64_t{1} << number : number);
    }
    case Instruction::GetElementPtr: {
      auto* address = cast<GetElementPtrInst>(instruction);
      if (address->getNumIndices() != 1) return std::nullopt;
      if (is_uniform(1)) return of(0);
      if (!is_uniform(0)) return std::nullopt;
      return times(of(1), layout_.getTypeAllocSize(address->getSourceElementType()));
    }
    default: return std::nullopt;
  }
}

// A mask of so many lanes. Without mask registers, a mask's bits are inserted into a vector one by one.
Value* CompressedStores::first_lanes(Value* count, unsigned width, IRBuilder<>& builder) const {
  if (isa_.has_mask_registers) {
    Value* bits = builder.CreateNot(builder.CreateShl(builder.getInt32(-1), count));
    return builder.CreateBitCast(builder.CreateTrunc(bits, builder.getIntNTy(width)),
                                 FixedVectorType::get(builder.getInt1Ty(), width));
  }
  SmallVector<Constant*> numbers;
  for (unsigned lane = 0; lane < width; ++lane) numbers.push_back(builder.getInt32(lane));
  return builder.CreateICmpSLT(ConstantVector::get(numbers), builder.CreateVectorSplat(width, count));
}

bool CompressedStores::store(StoreInst& store, IRBuilder<>& builder) {
  Type* type = store.getValueOperand()->getType();
  const uint64_t bytes = layout_.getTypeStoreSize(type);
  if (!isa_.compress || !is_word(bytes)) return false;
  auto [allowed, address] = guarded_address_of(store);
  std::optional<Rank> rank = rank_of(address);
  if (!rank || rank->distance != bytes) return false;
  Value *offset = nullptr, *limit = nullptr;
  if (allowed && lanes_.is_divergent(allowed)) {
    std::optional<LaneGuard> guard = lane_guard_of(allowed, flow_);
    std::optional<Rank> guarded_rank = guard ? rank_of(guard->offset) : std::nullopt;
    if (!guarded_rank || guarded_rank->votes != rank->votes || guarded_rank->distance != bytes) return false;
    offset = guard->offset;
    limit = guard->limit;
  }
  ActiveLanes active = checks_.active_lanes(builder);
  Value* lanes = lanes_.mask_bits(builder);
  auto count_of = [&](Value* bits) { return builder.CreateUnaryIntrinsic(Intrinsic::ctpop, bits); };
  Value* count = builder.CreateZExt(count_of(lanes), builder.getInt64Ty());
  Value* reach = builder.CreateMul(builder.CreateSub(count, builder.getInt64(1)), builder.getInt64(bytes));
  Value* votes = builder.CreateTrunc(lanes_.scalar(rank->votes), builder.getInt32Ty());
  Value* condition = builder.CreateAnd(builder.CreateICmpEQ(votes, lanes),
                                       checks_.check_ends(active, {address, allowed, offset, limit}, reach, builder));
  Value* to = lane_scalars_.at_active_lane(address, active.first, builder);
  Value* values = lanes_.vector(store.getValueOperand(), builder);
  auto compressed = [&]() -> Values {
    const unsigned width = lanes_.register_lanes(type);
    Type* bits_type = builder.getIntNTy(width);
    for (unsigned lane = 0; lane < kLanes; lane += width) {
      const SmallVector<int> part = createSequentialMask(lane, width, 0);
      Value* mask = builder.CreateShuffleVector(lanes_.mask(), part);
      Value* some = isa_.compress(builder.CreateShuffleVector(values, part), mask, builder);
      Value* stored = count_of(builder.CreateZExt(builder.CreateBitCast(mask, bits_type), builder.getInt32Ty()));
      builder.CreateMaskedStore(some, to, std::min(store.getAlign(), Align(bytes)),
                                first_lanes(stored, width, builder));
      to = builder.CreateGEP(type, to, builder.CreateZExt(stored, builder.getInt64Ty()));
    }
    return {};
  };
  auto scattered = [&]() -> Values {
    lane_accesses_.store(store, builder);
    return {};
  };
  lanes_.create_if_else({condition, "compressed", "scattered"}, builder, compressed, scattered);
  return true;
}

}  // namespace kiln::widening
