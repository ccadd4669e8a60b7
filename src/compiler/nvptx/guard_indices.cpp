#include "compiler/nvptx/guard_indices.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/KnownBits.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <tuple>

#include "compiler/ir/constant_sums.h"
#include "compiler/nvptx/ptx_generator.h"

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

// index * 2^shift + constant, in 64 bits, without overflow.
struct ScaledIndex {
  Value* index;
  bool is_signed;
  unsigned shift;
  uint64_t constant;
};

constexpr uint64_t kMostConstant = uint64_t{1} << 31;
constexpr unsigned kMostShift = 24;

std::optional<ScaledIndex> scaled_index(Value* offset) {
  const APInt* number = nullptr;
  ScaledIndex result{nullptr, false, 0, 0};
  Value* scaled = offset;
  if (match(offset, m_AddLike(m_Value(scaled), m_APInt(number)))) {
    if (number->uge(kMostConstant)) return std::nullopt;
    result.constant = number->getZExtValue();
  } else {
    scaled = offset;
  }
  Value* extended = scaled;
  if (match(scaled, m_Shl(m_Value(extended), m_APInt(number)))) {
    if (number->ugt(kMostShift)) return std::nullopt;
    result.shift = static_cast<unsigned>(number->getZExtValue());
  } else {
    extended = scaled;
  }
  if (match(extended, m_SExt(m_Value(result.index))))
    result.is_signed = true;
  else if (!match(extended, m_ZExt(m_Value(result.index))))
    return std::nullopt;
  if (!result.index->getType()->isIntegerTy(32)) return std::nullopt;
  // A negative index with a larger constant may be in bounds.
  if (result.is_signed && result.constant >= uint64_t{1} << result.shift) return std::nullopt;
  return result;
}

// An offset that is a sum with a constant.
struct Neighbour {
  ICmpInst* guard;
  int64_t distance;
};

// What neighbours have in common: an integer, or the difference of a pointer and an integer.
struct NeighbourBase {
  Value* base;
  Value* subtracted;  // null if `base` is an integer
  Value* end;         // constant for an argument of known size

  bool operator<(const NeighbourBase& other) const {
    return std::tie(base, subtracted, end) < std::tie(other.base, other.subtracted, other.end);
  }
};

constexpr unsigned kMostDepth = 6;
constexpr int64_t kMostDistance = int64_t{1} << 29;

class GuardIndices {
 public:
  bool run(Function& kernel) {
    bool has_changed = compare_indices(kernel);
    has_changed |= compare_neighbours(kernel);
    has_changed |= compare_small_offsets(kernel);
    has_changed |= compare_bases(kernel);
    return has_changed;
  }

 private:
  bool compare_indices(Function& kernel) {
    bool has_changed = false;
    for (Instruction& instruction : make_early_inc_range(instructions(kernel))) {
      auto* guard = dyn_cast<ICmpInst>(&instruction);
      if (!guard || !guard->getOperand(0)->getType()->isIntegerTy(64)) continue;
      if (guard->getPredicate() == ICmpInst::ICMP_UGT) {
        guard->swapOperands();
        has_changed = true;
      }
      if (guard->getPredicate() != ICmpInst::ICMP_ULT) continue;
      Instruction* end = end_of_argument(guard->getOperand(1));
      auto* bytes = dyn_cast<ConstantInt>(guard->getOperand(1));  // of a variable
      std::optional<ScaledIndex> index = end || bytes ? scaled_index(guard->getOperand(0)) : std::nullopt;
      if (!index) continue;
      if (bytes && bytes->getValue().uge(kMostConstant)) continue;
      const Limit limit = end ? limit_of(*end, *index) : limit_of(*bytes, *index);
      IRBuilder<> builder(guard);
      Value* inside = builder.CreateICmpULT(index->index, limit.index);
      if (limit.is_beyond && !computeKnownBits(index->index, kernel.getDataLayout()).getMaxValue().ult(~0u))
        inside = builder.CreateOr(inside, limit.is_beyond);
      Value* offset = guard->getOperand(0);
      guard->replaceAllUsesWith(inside);
      guard->eraseFromParent();
      RecursivelyDeleteTriviallyDeadInstructions(offset);
      has_changed = true;
    }
    return has_changed;
  }

  // Offsets of 64 bits at constant distances from one another, as of a pointer that moves: `base + distance`. In arrays
  // of less than 2 GiB each is compared in 32 bits. The largest is computed in 64 bits and saturated to 32, and the
  // others are that less a constant. If the largest does not fit, or is negative, all are out of bounds, and what is
  // subtracted from 2^32 - 1, or from a smaller number than itself, is at least 2^31.
  bool compare_neighbours(Function& kernel) {
    MapVector<NeighbourBase, SmallVector<Neighbour>, std::map<NeighbourBase, unsigned>> groups;
    const DataLayout& layout = kernel.getDataLayout();
    for (Instruction& instruction : instructions(kernel)) {
      auto* guard = dyn_cast<ICmpInst>(&instruction);
      if (!guard || guard->getPredicate() != ICmpInst::ICMP_ULT || !guard->getOperand(0)->getType()->isIntegerTy(64))
        continue;
      Value* end = guard->getOperand(1);
      if (auto* bytes = dyn_cast<ConstantInt>(end)) {
        // Of a variable, whose offsets are small: compare_small_offsets().
        if (bytes->getValue().uge(kMostConstant) ||
            ComputeNumSignBits(guard->getOperand(0), kernel.getDataLayout()) > 32)
          continue;
      } else {
        Instruction* loaded = end_of_argument(end);
        if (!loaded || !is_short(*loaded)) continue;
      }
      NeighbourBase group{guard->getOperand(0), nullptr, end};
      APInt distance(64, 0);
      const APInt* number = nullptr;
      // (A match that fails may have bound its first value.)
      for (Value* rest = nullptr; match(group.base, m_AddLike(m_Value(rest), m_APInt(number))); group.base = rest)
        distance += *number;
      Value *pointer = nullptr, *start = nullptr;
      if (match(group.base, m_Sub(m_PtrToInt(m_Value(pointer)), m_Value(start)))) {
        group.base = pointer->stripAndAccumulateConstantOffsets(layout, distance, /*AllowNonInbounds=*/true);
        group.subtracted = start;
      }
      if (distance.abs().ult(kMostDistance)) groups[group].push_back({guard, distance.getSExtValue()});
    }
    bool has_changed = false;
    for (auto& [group, neighbours] : groups) {
      auto* definition = dyn_cast<Instruction>(group.base);
      if (neighbours.size() < 2 || !definition) continue;
      // In front of the first guard, if it is before all others: what is subtracted is defined there, too.
      ICmpInst* first = neighbours.front().guard;
      DominatorTree& dominators = dominators_of(kernel);
      if (!all_of(neighbours,
                  [&](const Neighbour& n) { return n.guard == first || dominators.dominates(first, n.guard); }))
        continue;
      int64_t largest = neighbours.front().distance;
      for (const Neighbour& neighbour : neighbours) largest = std::max(largest, neighbour.distance);
      IRBuilder<> builder(first);
      Value* offset = group.base;
      if (group.subtracted) {
        offset = builder.CreateAddrSpaceCast(offset, builder.getPtrTy());
        offset = builder.CreateSub(builder.CreatePtrToInt(offset, builder.getInt64Ty()), group.subtracted);
      }
      offset = builder.CreateAdd(offset, builder.getInt64(static_cast<uint64_t>(largest)));
      offset = builder.CreateBinaryIntrinsic(Intrinsic::umin, offset, builder.getInt64(~uint32_t{0}));
      offset = builder.CreateTrunc(offset, builder.getInt32Ty());
      Value* end = builder.CreateTrunc(group.end, builder.getInt32Ty());
      for (const Neighbour& neighbour : neighbours) {
        builder.SetInsertPoint(neighbour.guard);
        Value* own = builder.CreateSub(offset, builder.getInt32(static_cast<uint32_t>(largest - neighbour.distance)));
        Value* old = neighbour.guard->getOperand(0);
        neighbour.guard->replaceAllUsesWith(builder.CreateICmpULT(own, end));
        neighbour.guard->eraseFromParent();
        RecursivelyDeleteTriviallyDeadInstructions(old);
      }
      has_changed = true;
    }
    return has_changed;
  }

  DominatorTree& dominators_of(Function& kernel) {
    if (!dominators_) dominators_.emplace(kernel);
    return *dominators_;
  }

  // Offsets of 64 bits that fit into 32 with their sign, as those from a thread's position in its threadgroup.
  static bool compare_small_offsets(Function& kernel) {
    bool has_changed = false;
    for (Instruction& instruction : make_early_inc_range(instructions(kernel))) {
      auto* guard = dyn_cast<ICmpInst>(&instruction);
      if (!guard || guard->getPredicate() != ICmpInst::ICMP_ULT || !guard->getOperand(0)->getType()->isIntegerTy(64))
        continue;
      auto* bytes = dyn_cast<ConstantInt>(guard->getOperand(1));
      Value* offset = guard->getOperand(0);
      if (!bytes || bytes->getValue().uge(kMostConstant) || isa<Constant>(offset)) continue;
      if (ComputeNumSignBits(offset, kernel.getDataLayout()) <= 32) continue;
      IRBuilder<> builder(guard);
      Value* narrow = narrowed(builder, offset, 0);
      guard->replaceAllUsesWith(
          builder.CreateICmpULT(narrow, builder.getInt32(static_cast<uint32_t>(bytes->getZExtValue()))));
      guard->eraseFromParent();
      RecursivelyDeleteTriviallyDeadInstructions(offset);
      has_changed = true;
    }
    return has_changed;
  }

  // `base + c < limit` becomes `base < limit - c`, rounded up to what the base is a multiple of: unrolled accesses of a
  // row of a tile then have one guard.
  static bool compare_bases(Function& kernel) {
    bool has_changed = false;
    const DataLayout& layout = kernel.getDataLayout();
    for (Instruction& instruction : make_early_inc_range(instructions(kernel))) {
      auto* guard = dyn_cast<ICmpInst>(&instruction);
      const APInt* number = nullptr;
      Value* base = nullptr;
      if (!guard || !match(guard, m_SpecificICmp(ICmpInst::ICMP_ULT, m_Value(base), m_APInt(number)))) continue;
      APInt limit = *number;
      for (std::optional<ConstantSum> sum;
           (sum = constant_sum_of(*base)) && sum->never_wraps(/*is_signed=*/false, layout);) {
        limit = limit.usub_sat(*sum->addend);
        base = sum->base;
      }
      if (base == guard->getOperand(0) || !base->getType()->isIntegerTy()) continue;
      const KnownBits known = computeKnownBits(base, layout);
      const unsigned zeros = std::min(known.countMinTrailingZeros(), limit.getBitWidth() - 1);
      IRBuilder<> builder(guard);
      Value* inside = builder.getTrue();
      if (!known.getMaxValue().ult(limit)) {
        bool overflows = false;
        APInt rounded = limit.uadd_ov(APInt::getLowBitsSet(limit.getBitWidth(), zeros), overflows);
        rounded.clearLowBits(zeros);
        inside = builder.CreateICmpULT(base, builder.getInt(overflows ? limit : rounded));
      }
      Value* old = guard->getOperand(0);
      guard->replaceAllUsesWith(inside);
      guard->eraseFromParent();
      RecursivelyDeleteTriviallyDeadInstructions(old);
      has_changed = true;
    }
    return has_changed;
  }

  // The lower 32 bits of an integer, computed in 32 bits.
  static Value* narrowed(IRBuilder<>& builder, Value* value, unsigned depth) {
    Type* type = builder.getInt32Ty();
    if (auto* extension = dyn_cast<CastInst>(value); extension && isa<ZExtInst, SExtInst>(extension)) {
      Value* source = extension->getOperand(0);
      if (source->getType()->getIntegerBitWidth() <= 32)
        return isa<ZExtInst>(extension) ? builder.CreateZExt(source, type) : builder.CreateSExt(source, type);
    }
    if (auto* operation = dyn_cast<BinaryOperator>(value); operation && depth < kMostDepth) {
      const Instruction::BinaryOps code = operation->getOpcode();
      auto* amount = dyn_cast<ConstantInt>(operation->getOperand(1));
      const bool is_shift = code == Instruction::Shl && amount && amount->getValue().ult(32);
      if (is_shift || code == Instruction::Add || code == Instruction::Sub || code == Instruction::Mul ||
          code == Instruction::And || code == Instruction::Or || code == Instruction::Xor)
        return builder.CreateBinOp(code, narrowed(builder, operation->getOperand(0), depth + 1),
                                   narrowed(builder, operation->getOperand(1), depth + 1));
    }
    return builder.CreateTrunc(value, type);
  }

  // Whether an end is below 2^31.
  static bool is_short(Instruction& end) {
    Value* all = &end;
    match(all, m_Intrinsic<Intrinsic::usub_sat>(m_Value(all), m_ConstantInt()));
    return match(all, m_ZExt(m_Value()));
  }

  struct Limit {
    Value* index;      // i32
    Value* is_beyond;  // i1: every index of 32 bits is in bounds; null if the index is signed
  };

  // An end in bytes, or the number of offsets at which an access may start.
  static Instruction* end_of_argument(Value* value) {
    auto* end = dyn_cast<Instruction>(value);
    Value* all = value;
    if (match(value, m_Intrinsic<Intrinsic::usub_sat>(m_Value(all), m_ConstantInt()))) value = all;
    Value* low = value;
    if (match(value, m_ZExt(m_Value(low)))) value = low;  // arrays of less than 2 GiB
    auto* load = dyn_cast<LoadInst>(value);
    return load && load->getPointerAddressSpace() == kParameterSpace ? end : nullptr;
  }

  static Limit limit_of(const ConstantInt& bytes, const ScaledIndex& index) {
    const uint64_t all = bytes.getZExtValue(), left = all > index.constant ? all - index.constant : 0;
    const uint64_t limit = (left + (uint64_t{1} << index.shift) - 1) >> index.shift;
    return {ConstantInt::get(Type::getInt32Ty(bytes.getContext()), limit), nullptr};
  }

  const Limit& limit_of(Instruction& end, const ScaledIndex& index) {
    auto [found, is_new] =
        limits_.try_emplace({&end, index.shift, index.constant, index.is_signed}, Limit{nullptr, nullptr});
    if (!is_new) return found->second;
    IRBuilder<> builder(end.getNextNode());
    Value* limit = &end;
    if (index.constant)
      limit = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, limit, builder.getInt64(index.constant));
    if (index.shift) {
      // Rounded up, without overflow: no array has 2^63 bytes.
      limit = builder.CreateAdd(limit, builder.getInt64((uint64_t{1} << index.shift) - 1));
      limit = builder.CreateLShr(limit, index.shift);
    }
    const uint64_t most = index.is_signed ? uint64_t{1} << 31 : ~uint32_t{0};
    const bool fits = is_short(end);
    if (!index.is_signed && !fits) found->second.is_beyond = builder.CreateICmpUGT(limit, builder.getInt64(most));
    if (!fits) limit = builder.CreateBinaryIntrinsic(Intrinsic::umin, limit, builder.getInt64(most));
    found->second.index = builder.CreateTrunc(limit, builder.getInt32Ty());
    return found->second;
  }

  std::map<std::tuple<Instruction*, unsigned, uint64_t, bool>, Limit> limits_;
  std::optional<DominatorTree> dominators_;
};

}  // namespace

bool compare_indices_in_guards(Function& kernel) { return GuardIndices().run(kernel); }

}  // namespace kiln
