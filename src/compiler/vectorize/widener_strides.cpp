// Indices that have a stride in every simdgroup but those at a border.
//
// Problem: `x[max(i - 1, 0)]`, `x[i == last ? 0 : i + 1]` and `x[(i + 1) % n]` are consecutive in nearly all
// simdgroups. A test of the lanes' vector when the code runs (widener_run_time_shapes.h) finds out, but it is a
// branch on vectors at each access, which no versioning can hoist.
//
// Idea: a piece is the affine side of a select, minimum, maximum, saturating subtraction or remainder. All lanes are on
// that side if the first and the last lane are, because what the condition compares has a stride: it is monotonic. So
// a piece has a stride under a condition of scalars. Every check that an access's lanes follow their stride
// (check_stride) requires the conditions of the pieces in its address. Such a check is arithmetic of uniform values, so
// function and loop versioning hoist it, and a stencil's interior runs without branches.
//
// Rejected: pieces as start values of loops. The checks would be made in the loop, on values before it.
//
// Complexity: linear in the instructions of an address, for each access.
#include "compiler/vectorize/widener_strides.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

#include "compiler/vectorize/widener_lane_values.h"
#include "compiler/vectorize/widener_lanes.h"

namespace kiln::widening {

using namespace PatternMatch;

namespace {

constexpr unsigned kMostNested = 4;

std::optional<CmpInst::Predicate> predicate_of_first(Intrinsic::ID which) {
  switch (which) {
    case Intrinsic::smax: return CmpInst::ICMP_SGE;
    case Intrinsic::smin: return CmpInst::ICMP_SLE;
    case Intrinsic::umax:
    case Intrinsic::usub_sat: return CmpInst::ICMP_UGE;
    case Intrinsic::umin: return CmpInst::ICMP_ULE;
    default: return std::nullopt;
  }
}

}  // namespace

bool is_remainder(const Instruction& instruction) {
  return instruction.getOpcode() == Instruction::URem || instruction.getOpcode() == Instruction::SRem;
}

std::optional<int64_t> Strides::stride_of(Value* value) {
  if (!flow_.is_divergent(value)) return 0;
  if (auto found = strides_.find(value); found != strides_.end()) return found->second;
  // Assume that a loop's phi has the stride of its start value, unless the latch's value has another.
  if (auto* phi = dyn_cast<PHINode>(value)) {
    Loop* loop = loops_.getLoopFor(phi->getParent());
    if (!loop || loop->getHeader() != phi->getParent()) return std::nullopt;
    Value *start = phi->getIncomingValueForBlock(loop->getLoopPreheader()),
          *next = phi->getIncomingValueForBlock(loop->getLoopLatch());
    std::optional<int64_t> stride = stride_of(start);
    if (stride && has_piece(start)) stride.reset();
    strides_[value] = stride;
    if (stride && (stride_of(next) != stride || has_piece(next))) {
      strides_.clear();  // some were derived from the assumption
      strides_[value] = std::nullopt;
      return std::nullopt;
    }
    return stride;
  }
  return strides_[value] = stride_of_result(value);
}

std::optional<int64_t> Strides::stride_of_result(Value* value) {
  if (is_lane(value)) return 1;
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction) return std::nullopt;
  if (std::optional<Piece> piece = piece_of(*instruction)) return piece->stride;
  auto of = [&](unsigned i) { return stride_of(instruction->getOperand(i)); };
  auto is_uniform = [&](unsigned i) { return !flow_.is_divergent(instruction->getOperand(i)); };
  switch (instruction->getOpcode()) {
    case Instruction::ZExt:
    case Instruction::SExt:
    case Instruction::Trunc:
    case Instruction::PtrToInt:
    case Instruction::IntToPtr: return of(0);
    case Instruction::Or:
      if (!cast<PossiblyDisjointInst>(instruction)->isDisjoint()) return std::nullopt;
      [[fallthrough]];
    case Instruction::Add:
      // If both operands are divergent, one could wrap and the other make up for it.
      if (is_uniform(1)) return of(0);
      if (is_uniform(0)) return of(1);
      // A piece of stride 0 is the same in all lanes wherever the stride counts.
      if (of(0) == 0) return of(1);
      if (of(1) == 0) return of(0);
      return std::nullopt;
    case Instruction::Sub:
      if (is_uniform(1)) return of(0);
      return std::nullopt;
    case Instruction::Mul:
    case Instruction::Shl: {
      auto* factor = dyn_cast<ConstantInt>(instruction->getOperand(1));
      std::optional<int64_t> stride = of(0);
      if (!factor || !stride || factor->getValue().getActiveBits() > 16) return std::nullopt;
      uint64_t by = factor->getZExtValue();
      if (instruction->getOpcode() == Instruction::Shl) {
        if (by > 16) return std::nullopt;
        by = uint64_t{1} << by;
      }
      if (*stride < 0 || static_cast<uint64_t>(*stride) * by > 1 << 16) return std::nullopt;
      return static_cast<int64_t>(*stride * by);
    }
    case Instruction::GetElementPtr: {
      // One operand is divergent: the base, or an array index.
      std::optional<unsigned> divergent_index;
      for (unsigned i = 0; i < instruction->getNumOperands(); ++i)
        if (!is_uniform(i)) {
          if (divergent_index) return std::nullopt;
          divergent_index = i;
        }
      std::optional<int64_t> stride = of(*divergent_index);
      if (*divergent_index == 0 || !stride) return stride;
      auto level = gep_type_begin(instruction);
      std::advance(level, *divergent_index - 1);
      uint64_t size = level.getSequentialElementStride(layout_);
      if (size > 1 << 16) return std::nullopt;
      return *stride * static_cast<int64_t>(size);
    }
    default: return std::nullopt;
  }
}

uint64_t Strides::element_stride(Value* pointer, uint64_t bytes) {
  std::optional<int64_t> stride = stride_of(pointer);
  if (!stride) return 0;
  for (int64_t step : {1, 2, 3, 4, 8, 16}) {
    if (*stride != step * static_cast<int64_t>(bytes)) continue;
    const bool is_served =
        step == 1 || (is_word(bytes) ? bytes == 4 || step != 16 : isPowerOf2_64(bytes) && *stride <= 16);
    return is_served ? static_cast<uint64_t>(step) : 0;
  }
  return 0;
}

uint64_t Strides::row_stride(Value* pointer, uint64_t bytes) {
  std::optional<int64_t> stride = stride_of(pointer);
  if (!stride || *stride <= 0 || bytes > sizeof(uint32_t) || *stride % static_cast<int64_t>(bytes) != 0) return 0;
  return element_stride(pointer, bytes) == 0 ? static_cast<uint64_t>(*stride) / bytes : 0;
}

bool Strides::has_negative_offset(Value* value) const {
  SmallVector<Value*> left{value};
  SmallPtrSet<Value*, 16> seen;
  while (!left.empty()) {
    Value* next = left.pop_back_val();
    auto* instruction = dyn_cast<Instruction>(next);
    if (!instruction || !flow_.is_divergent(next) || is_lane(next) || isa<PHINode>(instruction) ||
        !seen.insert(next).second)
      continue;
    const bool is_narrow = next->getType()->isIntegerTy() && next->getType()->getIntegerBitWidth() < 64;
    if (is_narrow && instruction->getOpcode() == Instruction::Sub) return true;
    if (is_narrow && instruction->getOpcode() == Instruction::Add) {
      auto* constant = dyn_cast<ConstantInt>(instruction->getOperand(1));
      if (constant && constant->isNegative()) return true;
    }
    append_range(left, instruction->operand_values());
  }
  return false;
}

// Whether all lanes have `value`, or any one value if there is none, is known if a number with a stride is compared
// with a uniform one.
bool Strides::add_lane_comparisons(Value* condition, std::optional<bool> value,
                                   SmallVectorImpl<LaneComparison>& comparisons, unsigned depth) {
  if (!flow_.is_divergent(condition)) return false;
  Value *one, *other;
  if (match(condition, m_Not(m_Value(one)))) {
    if (value) value = !*value;
    return add_lane_comparisons(one, value, comparisons, depth);
  }
  if (depth < kMostNested && value &&
      (*value ? match(condition, m_LogicalAnd(m_Value(one), m_Value(other)))
              : match(condition, m_LogicalOr(m_Value(one), m_Value(other)))))
    return add_lane_comparisons(one, value, comparisons, depth + 1) &&
           add_lane_comparisons(other, value, comparisons, depth + 1);
  auto* comparison = dyn_cast<ICmpInst>(condition);
  if (!comparison || !comparison->getOperand(0)->getType()->isIntegerTy()) return false;
  return add_lane_comparison(comparison->getPredicate(), comparison->getOperand(0), comparison->getOperand(1), value,
                             comparisons);
}

bool Strides::add_lane_comparison(CmpInst::Predicate predicate, Value* number, Value* limit, std::optional<bool> value,
                                  SmallVectorImpl<LaneComparison>& comparisons) {
  if (!flow_.is_divergent(number)) {
    std::swap(number, limit);
    predicate = CmpInst::getSwappedPredicate(predicate);
  }
  if (flow_.is_divergent(limit)) return false;
  std::optional<int64_t> stride = stride_of(number);
  if (!stride || *stride <= 0) return false;
  // Of lanes that differ one at most is equal to the limit.
  if (CmpInst::isEquality(predicate) && value != (predicate == CmpInst::ICMP_NE)) return false;
  comparisons.push_back({predicate, number, limit, value});
  return true;
}

std::optional<Piece> Strides::piece_of(Instruction& instruction) {
  if (!instruction.getType()->isIntegerTy() || instruction.getType()->isIntegerTy(1) ||
      !flow_.is_divergent(&instruction))
    return std::nullopt;
  if (auto found = pieces_.find(&instruction); found != pieces_.end()) return found->second;
  std::optional<Piece> piece = find_piece(instruction);
  pieces_[&instruction] = piece;
  return piece;
}

std::optional<Piece> Strides::find_piece(Instruction& instruction) {
  Piece piece;
  if (auto* call = dyn_cast<IntrinsicInst>(&instruction)) {
    std::optional<CmpInst::Predicate> predicate = predicate_of_first(call->getIntrinsicID());
    if (!predicate) return std::nullopt;
    Value *one = call->getArgOperand(0), *other = call->getArgOperand(1);
    if (!flow_.is_divergent(one) && call->isCommutative()) std::swap(one, other);
    if (!add_lane_comparison(*predicate, one, other, true, piece.comparisons) || flow_.is_divergent(other))
      return std::nullopt;
    piece.side = one;
    piece.stride = *stride_of(one);
    if (call->getIntrinsicID() == Intrinsic::usub_sat) piece.subtracted = other;
    return piece;
  }
  const APInt* mask = nullptr;
  Value* number = nullptr;
  if (is_remainder(instruction) || (match(&instruction, m_And(m_Value(number), m_APInt(mask))) && mask->isMask() &&
                                    !lane_bits(&instruction, flow_, layout_))) {
    number = instruction.getOperand(0);
    if (flow_.is_divergent(instruction.getOperand(1))) return std::nullopt;
    std::optional<int64_t> stride = stride_of(number);
    if (!stride || *stride <= 0) return std::nullopt;
    piece.dividend = number;
    piece.stride = *stride;
    return piece;
  }
  Value *condition, *if_true, *if_false;
  if (auto* select = dyn_cast<SelectInst>(&instruction)) {
    condition = select->getCondition();
    if_true = select->getTrueValue();
    if_false = select->getFalseValue();
  } else if ((isa<ZExtInst, SExtInst>(instruction)) && instruction.getOperand(0)->getType()->isIntegerTy(1)) {
    condition = instruction.getOperand(0);
    if_false = ConstantInt::get(instruction.getType(), 0);
    if_true = ConstantInt::getSigned(instruction.getType(), isa<ZExtInst>(instruction) ? 1 : -1);
  } else {
    return std::nullopt;
  }
  std::optional<int64_t> true_stride = stride_of(if_true), false_stride = stride_of(if_false);
  // A side that is the same in all lanes is that of the border, unless both are.
  auto take = [&](bool value) {
    piece.comparisons.clear();
    const std::optional<int64_t>& stride = value ? true_stride : false_stride;
    if (!stride || !add_lane_comparisons(condition, value, piece.comparisons)) return false;
    piece.side = value ? if_true : if_false;
    piece.stride = *stride;
    return true;
  };
  const bool may_be_true = true_stride && flow_.is_divergent(if_true),
             may_be_false = false_stride && flow_.is_divergent(if_false);
  if (may_be_true != may_be_false) return take(may_be_true) ? std::optional(piece) : std::nullopt;
  if (!true_stride && !false_stride) return std::nullopt;
  if (true_stride == false_stride && add_lane_comparisons(condition, std::nullopt, piece.comparisons)) {
    piece.stride = *true_stride;
    return piece;
  }
  return take(false) || take(true) ? std::optional(piece) : std::nullopt;
}

SmallVector<Instruction*> Strides::pieces_in(Value* value) {
  SmallVector<Instruction*> pieces;
  SmallVector<Value*> left{value};
  SmallPtrSet<Value*, 16> seen;
  while (!left.empty()) {
    Value* next = left.pop_back_val();
    auto* instruction = dyn_cast<Instruction>(next);
    if (!instruction || !flow_.is_divergent(next) || is_lane(next) || isa<PHINode>(instruction) ||
        !seen.insert(next).second || values_of(next))
      continue;
    if (std::optional<Piece> piece = piece_of(*instruction)) {
      pieces.push_back(instruction);
      if (Value* only = piece->side ? piece->side : piece->dividend)
        left.push_back(only);
      else if (isa<SelectInst>(instruction))
        append_range(left, drop_begin(instruction->operand_values()));
    } else if (isa<CastInst, BinaryOperator, GetElementPtrInst>(instruction)) {
      append_range(left, instruction->operand_values());
    }
  }
  return pieces;
}

}  // namespace kiln::widening
