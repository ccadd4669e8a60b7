#include "compiler/lowering/warp_masks.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/CycleAnalysis.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/KnownBits.h>

#include <bit>
#include <memory>
#include <optional>

#include "compiler/analysis/barrier_uniformity.h"
#include "compiler/analysis/divergence.h"
#include "compiler/analysis/uniformity.h"
#include "compiler/ir/convergence_point.h"
#include "compiler/ir/lane_operations.h"
#include "compiler/ir/ordering_edges.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/ir/thread_ranges.h"
#include "core/cpu_functions.h"
#include "core/cpu_image.h"

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

constexpr unsigned kMostSteps = 12;  // of operands that are followed from a mask or a condition

bool is_mask(const Instruction& instruction) { return calls(instruction, kMaskFunction); }

// A value without value-preserving conversions: collectives carry 64 bits.
Value* plain(Value* value) {
  Value* inner;
  for (;;) {
    if (!value->getType()->isIntegerTy(1) && match(value, m_ZExtOrSelf(m_Trunc(m_Value(inner)))))
      value = inner;
    else if (match(value, m_ZExt(m_Value(inner))) && !inner->getType()->isIntegerTy(1))
      value = inner;
    else if (ICmpInst::Predicate predicate; match(value, m_ICmp(predicate, m_ZExt(m_Value(inner)), m_Zero())) &&
                                            predicate == ICmpInst::ICMP_NE && inner->getType()->isIntegerTy(1))
      value = inner;
    else
      return value;
  }
}

// The value of a condition in one lane of one simdgroup, computed from the lane's number and that of the first thread.
class LaneEvaluation {
 public:
  LaneEvaluation(uint32_t lane, uint32_t first) : lane_(lane), first_(first) {}

  std::optional<APInt> value_of(const Value* value, unsigned depth = 0) const {
    if (!value->getType()->isIntegerTy() || depth > kMostSteps) return std::nullopt;
    if (auto* constant = dyn_cast<ConstantInt>(value)) return constant->getValue();
    if (is_lane(value)) return APInt(value->getType()->getIntegerBitWidth(), lane_);
    const auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction) return std::nullopt;
    if (auto* sum = dyn_cast<PossiblyDisjointInst>(instruction); sum && sum->isDisjoint())
      for (unsigned i : {0u, 1u})
        if (std::optional<uint32_t> kept = kept_of_first(*sum->getOperand(1 - i)); kept && is_lane(sum->getOperand(i)))
          return APInt(value->getType()->getIntegerBitWidth(), lane_ + (first_ & *kept));
    auto operand = [&](unsigned i) { return value_of(instruction->getOperand(i), depth + 1); };
    if (auto* cast = dyn_cast<CastInst>(instruction)) {
      std::optional<APInt> from = operand(0);
      if (!from) return std::nullopt;
      unsigned bits = value->getType()->getIntegerBitWidth();
      switch (cast->getOpcode()) {
        case Instruction::ZExt: return from->zext(bits);
        case Instruction::SExt: return from->sext(bits);
        case Instruction::Trunc: return from->trunc(bits);
        default: return std::nullopt;
      }
    }
    if (isa<SelectInst>(instruction)) {
      std::optional<APInt> condition = operand(0);
      return condition ? operand(condition->isOne() ? 1 : 2) : std::nullopt;
    }
    if (auto* comparison = dyn_cast<ICmpInst>(instruction)) {
      std::optional<APInt> left = operand(0), right = operand(1);
      if (!left || !right) return std::nullopt;
      return APInt(1, ICmpInst::compare(*left, *right, comparison->getPredicate()));
    }
    if (!isa<BinaryOperator>(instruction)) return std::nullopt;
    std::optional<APInt> left = operand(0), right = operand(1);
    // One operand may be enough.
    if (instruction->getOpcode() == Instruction::And && ((left && left->isZero()) || (right && right->isZero())))
      return APInt(value->getType()->getIntegerBitWidth(), 0);
    if (!left || !right) return std::nullopt;
    const bool shifts_too_far = right->uge(right->getBitWidth());
    switch (instruction->getOpcode()) {
      case Instruction::Add: return *left + *right;
      case Instruction::Sub: return *left - *right;
      case Instruction::Mul: return *left * *right;
      case Instruction::And: return *left & *right;
      case Instruction::Or: return *left | *right;
      case Instruction::Xor: return *left ^ *right;
      case Instruction::Shl: return shifts_too_far ? std::nullopt : std::optional(left->shl(*right));
      case Instruction::LShr: return shifts_too_far ? std::nullopt : std::optional(left->lshr(*right));
      case Instruction::AShr: return shifts_too_far ? std::nullopt : std::optional(left->ashr(*right));
      case Instruction::SDiv: return right->isZero() ? std::nullopt : std::optional(left->sdiv(*right));
      case Instruction::SRem: return right->isZero() ? std::nullopt : std::optional(left->srem(*right));
      case Instruction::UDiv: return right->isZero() ? std::nullopt : std::optional(left->udiv(*right));
      case Instruction::URem: return right->isZero() ? std::nullopt : std::optional(left->urem(*right));
      default: return std::nullopt;
    }
  }

 private:
  // Which bits the value keeps of the index of a simdgroup's first thread, in the threadgroup or along x; a multiple of
  // 32 below 1024. The two indices may differ, so a condition may use only one of them.
  std::optional<uint32_t> kept_of_first(Value& value) const {
    Value* number;
    const APInt* kept;
    if (!match(&value, m_And(m_Value(number), m_APInt(kept)))) return std::nullopt;
    const std::optional<Number> which = number_of_first(*number);
    if (!which || number_.value_or(*which) != *which) return std::nullopt;
    number_ = which;
    return static_cast<uint32_t>(kept->getRawData()[0]);
  }

  enum class Number : uint8_t { kInThreadgroup, kInLine };

  // In the arguments of CpuSimdgroupFunction.
  static std::optional<Number> number_of_first(Value& value) {
    if (auto* argument = dyn_cast<Argument>(&value))
      return argument->getArgNo() == kCpuX ? std::optional(Number::kInLine) : std::nullopt;
    auto* load = dyn_cast<LoadInst>(&value);
    if (!load) return std::nullopt;
    APInt offset(64, 0);
    const Value* record = load->getPointerOperand()->stripAndAccumulateConstantOffsets(load->getDataLayout(), offset,
                                                                                       /*AllowNonInbounds=*/false);
    const auto* argument = dyn_cast<Argument>(record);
    return argument && argument->getArgNo() == kCpuRecord && offset == kIndexInThreadgroup * sizeof(uint32_t)
               ? std::optional(Number::kInThreadgroup)
               : std::nullopt;
  }

  uint32_t lane_, first_;
  mutable std::optional<Number> number_;  // the one that first_ is
};

constexpr unsigned kLaneBits = 5;
static_assert(kLanes == 1u << kLaneBits);

// The size of a tile if the mask is that of the lane's tile (`tiled_partition`): 2^n ones, shifted by a multiple of
// their number.
std::optional<unsigned> tile_of(Value* mask) {
  const APInt *ones, *kept;
  Value* lane;
  if (!match(mask, m_Shl(m_APInt(ones), m_And(m_Value(lane), m_APInt(kept)))) || !is_lane(lane)) return std::nullopt;
  unsigned size = ones->countTrailingOnes();
  // If a branch implies some bits of the lane, InstCombine omits them.
  if (!std::has_single_bit(size) || !ones->isMask(size) || (kept->getZExtValue() & ~uint64_t{kLanes - size}) != 0)
    return std::nullopt;
  return size;
}

class MaskCheck {
 public:
  MaskCheck(Function& function, FunctionAnalysisManager& analyses, const Blocks& waiting)
      : function_(function),
        cycles_(analyses.getResult<CycleAnalysis>(function)),
        post_dominators_(analyses.getResult<PostDominatorTreeAnalysis>(function)),
        divergence_(analyses.getResult<DivergenceAnalysis>(function)),
        reaching_(blocks_reaching_by_real_edges(waiting)) {
    for (Instruction& instruction : instructions(function))
      if (is_mask(instruction)) masks_[instruction.getParent()].insert(cast<CallInst>(instruction).getArgOperand(0));
  }

  bool are_together() {
    return all_of(function_, [&](BasicBlock& block) {
      return !divergence_.is_divergent_branch(block) || !reaching_.contains(&block) || has_safe_join(block);
    });
  }

 private:
  using Mask = std::pair<const BasicBlock*, Value*>;

  // Whether no lanes wait on one side of the branch for others that take another side and wait elsewhere.
  bool has_safe_join(BasicBlock& branch_block) {
    const auto* node = post_dominators_.getNode(&branch_block);
    const BasicBlock* join = node && node->getIDom() ? node->getIDom()->getBlock() : nullptr;
    SmallVector<Mask> between;
    SmallPtrSet<const BasicBlock*, 16> seen;
    for (BasicBlock* side : successors(&branch_block)) {
      if (!is_real_edge(branch_block, *side) || side == join) continue;
      for (const BasicBlock* block : reached_from(*side, join, &branch_block)) {
        auto found = masks_.find(block);
        if (found == masks_.end() || !seen.insert(block).second) continue;
        for (Value* mask : found->second) between.push_back({block, mask});
      }
    }
    if (between.empty()) return true;
    for (BasicBlock* side : successors(&branch_block)) {
      if (!is_real_edge(branch_block, *side) || side == join) continue;
      const SetVector<const BasicBlock*> reached = reached_from(*side, join, &branch_block);
      for (BasicBlock* next : successors(&branch_block)) {
        if (next == side || !is_real_edge(branch_block, *next) || !reaching_.contains(next)) continue;
        DenseMap<const BasicBlock*, bool> arrives;
        for (auto [block, mask] : between) {
          if (!reached.contains(block)) continue;
          auto [known, is_new] = arrives.try_emplace(block);
          if (is_new) known->second = all_arrive(*next, *block, branch_block);
          if (!known->second && !excludes(mask, branch_block, *next, *block) && !is_uniform_for(mask, branch_block))
            return false;
        }
      }
    }
    return true;
  }

  // The blocks reached from `start` before `join` and before the branch is reached again.
  static SetVector<const BasicBlock*> reached_from(const BasicBlock& start, const BasicBlock* join,
                                                   const BasicBlock* branch_block) {
    SetVector<const BasicBlock*> reached;
    if (&start != branch_block) reached.insert(&start);
    for (unsigned i = 0; i < reached.size(); ++i)
      for (const BasicBlock* next : successors(reached[i]))
        if (next != join && next != branch_block && is_real_edge(*reached[i], *next)) reached.insert(next);
    return reached;
  }

  // Whether all paths from `next` reach `block` before they reach the branch again.
  static bool all_arrive(const BasicBlock& next, const BasicBlock& block, const BasicBlock& branch_block) {
    if (&next == &block) return true;
    if (&next == &branch_block) return false;
    SetVector<const BasicBlock*> reached;
    reached.insert(&next);
    for (unsigned i = 0; i < reached.size(); ++i) {
      if (succ_empty(reached[i])) return false;
      for (const BasicBlock* one : successors(reached[i])) {
        if (one == &block || !is_real_edge(*reached[i], *one)) continue;
        if (one == &branch_block) return false;
        reached.insert(one);
      }
    }
    return true;
  }

  // Whether no lane that goes from `branch_block` to `next` is in the mask that `call` has.
  bool excludes(Value* mask, const BasicBlock& branch_block, const BasicBlock& next, const BasicBlock& call) {
    if (auto* constant = dyn_cast<ConstantInt>(mask)) return sends_none(constant->getZExtValue(), branch_block, next);
    SmallPtrSet<const Value*, 8> seen;
    return excludes(mask, branch_block, next, call, seen);
  }

  bool excludes(Value* mask, const BasicBlock& branch_block, const BasicBlock& next, const BasicBlock& call,
                SmallPtrSetImpl<const Value*>& seen) {
    mask = plain(mask);
    if (auto* constant = dyn_cast<ConstantInt>(mask)) return constant->isZero();
    if (!seen.insert(mask).second) return true;
    if (seen.size() > kMostSteps) return false;
    auto part = [&](Value* value) { return excludes(value, branch_block, next, call, seen); };
    Value *a, *b;
    if (match(mask, m_Not(m_Value(a)))) {
      a = plain(a);
      return lane_operation(a) == LaneOperation::kVote && is_between(cast<Instruction>(*a), branch_block, call) &&
             edge_implies(branch_block, next, cast<CallInst>(a)->getArgOperand(0), true);
    }
    if (match(mask, m_And(m_Value(a), m_Value(b)))) return part(a) || part(b);
    if (match(mask, m_Or(m_Value(a), m_Value(b)))) return part(a) && part(b);
    if (match(mask, m_Select(m_Value(), m_Value(a), m_Value(b)))) return part(a) && part(b);
    if (auto* phi = dyn_cast<PHINode>(mask))
      return all_of(phi->incoming_values(), [&](const Use& use) { return part(use.get()); });
    if (lane_operation(mask) != LaneOperation::kVote) return false;
    auto* vote = cast<CallInst>(mask);
    return !is_between(*vote, branch_block, call) || edge_implies(branch_block, next, vote->getArgOperand(0), false);
  }

  // Whether lanes that have voted together may diverge at `branch_block` before they reach `call`.
  static bool is_between(const Instruction& vote, const BasicBlock& branch_block, const BasicBlock& call) {
    const BasicBlock* start = vote.getParent();
    if (start == &call) return false;
    if (start == &branch_block) return true;
    SetVector<const BasicBlock*> reached;
    auto visit_successors = [&](const BasicBlock* from) {
      for (const BasicBlock* next : successors(from))
        if (next != start && next != &call && is_real_edge(*from, *next)) reached.insert(next);
    };
    visit_successors(start);
    for (unsigned i = 0; i < reached.size(); ++i) visit_successors(reached[i]);
    return reached.contains(&branch_block);
  }

  // Whether only lanes in which the predicate is `value` go from `branch_block` to `next`.
  static bool edge_implies(const BasicBlock& branch_block, const BasicBlock& next, Value* predicate, bool value) {
    auto* branch = dyn_cast<BranchInst>(branch_block.getTerminator());
    if (!branch || !branch->isConditional() || branch->getSuccessor(0) == branch->getSuccessor(1)) return false;
    bool is_first = branch->getSuccessor(0) == &next;
    auto stripped = [](Value* condition, bool& is_inverted) {
      Value* inner;
      condition = plain(condition);
      while (match(condition, m_Not(m_Value(inner)))) condition = plain(inner), is_inverted = !is_inverted;
      return condition;
    };
    bool inverts_first = false, inverts_second = false;
    const Value* condition = stripped(branch->getCondition(), inverts_first);
    const Value* voted = stripped(predicate, inverts_second);
    if (condition == voted) return (is_first != (inverts_first != inverts_second)) == value;
    const auto *left = dyn_cast<ICmpInst>(condition), *right = dyn_cast<ICmpInst>(voted);
    if (!left || !right || left->getOperand(0) != right->getOperand(0) || left->getOperand(1) != right->getOperand(1))
      return false;
    if (left->getPredicate() == right->getInversePredicate())
      inverts_second = !inverts_second;
    else if (left->getPredicate() != right->getPredicate())
      return false;
    return (is_first != (inverts_first != inverts_second)) == value;
  }

  static bool sends_none(uint64_t mask, const BasicBlock& branch_block, const BasicBlock& next) {
    auto* branch = dyn_cast<BranchInst>(branch_block.getTerminator());
    if (!branch || !branch->isConditional()) return false;
    const bool is_first = branch->getSuccessor(0) == &next;
    for (uint32_t first = 0; first < kMostThreads; first += kLanes) {
      bool sends = false, goes_elsewhere = false;
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        std::optional<APInt> condition = LaneEvaluation(lane, first).value_of(branch->getCondition());
        if (!condition) return false;
        const bool goes = condition->isOne() == is_first;
        goes_elsewhere |= !goes;
        sends |= goes && (mask >> lane & 1);
      }
      if (sends && goes_elsewhere) return false;
    }
    return true;
  }

  // Whether the branch is uniform among lanes with the same mask.
  bool is_uniform_for(Value* mask, const BasicBlock& branch_block) {
    if (isa<Constant>(mask)) return false;
    std::unique_ptr<Divergence>& divergence = by_mask_[mask];
    if (!divergence) {
      std::optional<unsigned> tile = tile_of(mask);
      auto difference = [this, mask, tile](const Value& value) {
        if (&value == mask || (tile && is_uniform_in_tile(value, *tile))) return Difference::kNone;
        return divergence_between_threads(value, Lanes::kLockstep);
      };
      divergence = std::make_unique<Divergence>(function_, cycles_, post_dominators_, difference);
    }
    return !divergence->is_divergent_branch(branch_block);
  }

  // A lane's number without its position in the tile.
  bool is_uniform_in_tile(const Value& of, unsigned size) const {
    Value& value = const_cast<Value&>(of);  // PatternMatch binds what is not const
    const auto bits = static_cast<unsigned>(std::countr_zero(size));
    Value* whole;
    const APInt* number;
    const bool drops =
        (match(&value, m_LShr(m_Value(whole), m_APInt(number))) && number->uge(bits)) ||
        (match(&value, m_And(m_Value(whole), m_APInt(number))) && number->countr_zero() >= bits) ||
        (match(&value, m_UDiv(m_Value(whole), m_APInt(number))) && number->countr_zero() >= bits && !number->isZero());
    return drops && has_lane_below(whole, bits);
  }

  // Whether the value's lowest bits are those of the lane's number and the others are uniform.
  bool has_lane_below(const Value* value, unsigned bits, unsigned depth = 0) const {
    if (is_lane(value)) return true;
    const auto* sum = dyn_cast<BinaryOperator>(value);
    if (!sum || depth > kMostSteps || (sum->getOpcode() != Instruction::Add && sum->getOpcode() != Instruction::Or))
      return false;
    const DataLayout& layout = sum->getFunction()->getDataLayout();
    for (unsigned i : {0u, 1u}) {
      const Value* other = sum->getOperand(1 - i);
      if (has_lane_below(sum->getOperand(i), bits, depth + 1) && !divergence_.is_divergent_after_loops(other) &&
          computeKnownBits(other, layout).countMinTrailingZeros() >= kLaneBits)
        return true;
    }
    return false;
  }

  Function& function_;
  const CycleInfo& cycles_;
  const PostDominatorTree& post_dominators_;
  const Divergence& divergence_;
  const Blocks reaching_;
  DenseMap<const BasicBlock*, SmallSetVector<Value*, 2>> masks_;
  DenseMap<Value*, std::unique_ptr<Divergence>> by_mask_;
};

}  // namespace

bool masks_are_converged(Function& function, FunctionAnalysisManager& analyses,
                         function_ref<bool(const Instruction&)> is_barrier) {
  if (none_of(instructions(function), is_mask)) return true;
  const Blocks waiting = blocks_with(function, [&](const Instruction& one) { return is_mask(one) || is_barrier(one); });
  return MaskCheck(function, analyses, waiting).are_together();
}

void remove_masks(Function& function) {
  for (Instruction& instruction : make_early_inc_range(instructions(function)))
    if (is_mask(instruction)) instruction.eraseFromParent();
}

}  // namespace kiln
