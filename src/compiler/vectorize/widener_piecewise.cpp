// Indices that have a stride in every simdgroup but those at a border.
//
// Problem: `x[max(i - 1, 0)]`, `x[i == last ? 0 : i + 1]` and `x[(i + 1) % n]` are consecutive in nearly all
// simdgroups. A test of the lanes' vector when the code runs (widener_run_time_shapes.cpp) finds out, but it is a
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
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/PatternMatch.h>

#include "compiler/vectorize/widener.h"

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

bool is_remainder(const Instruction& instruction) {
  return instruction.getOpcode() == Instruction::URem || instruction.getOpcode() == Instruction::SRem;
}

}  // namespace

// Whether all lanes have `value`, or any one value if there is none, is known if a number with a stride is compared
// with a uniform one.
bool Widener::add_lane_comparisons(Value* condition, std::optional<bool> value,
                                   SmallVectorImpl<LaneComparison>& comparisons, unsigned depth) {
  if (!lanes_.is_divergent(condition)) return false;
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

bool Widener::add_lane_comparison(CmpInst::Predicate predicate, Value* number, Value* limit, std::optional<bool> value,
                                  SmallVectorImpl<LaneComparison>& comparisons) {
  if (!lanes_.is_divergent(number)) {
    std::swap(number, limit);
    predicate = CmpInst::getSwappedPredicate(predicate);
  }
  if (lanes_.is_divergent(limit)) return false;
  std::optional<int64_t> stride = stride_of(number);
  if (!stride || *stride <= 0) return false;
  // Of lanes that differ one at most is equal to the limit.
  if (CmpInst::isEquality(predicate) && value != (predicate == CmpInst::ICMP_NE)) return false;
  comparisons.push_back({predicate, number, limit, value});
  return true;
}

// What makes a stride of the instruction's result, if it is a piece.
std::optional<Widener::Piece> Widener::piece_of(Instruction& instruction) {
  if (!instruction.getType()->isIntegerTy() || instruction.getType()->isIntegerTy(1) ||
      !lanes_.is_divergent(&instruction))
    return std::nullopt;
  if (auto found = pieces_.find(&instruction); found != pieces_.end()) return found->second;
  std::optional<Piece> piece = find_piece(instruction);
  pieces_[&instruction] = piece;
  return piece;
}

std::optional<Widener::Piece> Widener::find_piece(Instruction& instruction) {
  Piece piece;
  if (auto* call = dyn_cast<IntrinsicInst>(&instruction)) {
    std::optional<CmpInst::Predicate> predicate = predicate_of_first(call->getIntrinsicID());
    if (!predicate) return std::nullopt;
    Value *one = call->getArgOperand(0), *other = call->getArgOperand(1);
    if (!lanes_.is_divergent(one) && call->isCommutative()) std::swap(one, other);
    if (!add_lane_comparison(*predicate, one, other, true, piece.comparisons) || lanes_.is_divergent(other))
      return std::nullopt;
    piece.side = one;
    piece.stride = *stride_of(one);
    if (call->getIntrinsicID() == Intrinsic::usub_sat) piece.subtracted = other;
    return piece;
  }
  const APInt* mask = nullptr;
  Value* number = nullptr;
  if (is_remainder(instruction) ||
      (match(&instruction, m_And(m_Value(number), m_APInt(mask))) && mask->isMask() && !lane_bits(&instruction))) {
    number = instruction.getOperand(0);
    if (lanes_.is_divergent(instruction.getOperand(1))) return std::nullopt;
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
  const bool may_be_true = true_stride && lanes_.is_divergent(if_true),
             may_be_false = false_stride && lanes_.is_divergent(if_false);
  if (may_be_true != may_be_false) return take(may_be_true) ? std::optional(piece) : std::nullopt;
  if (!true_stride && !false_stride) return std::nullopt;
  if (true_stride == false_stride && add_lane_comparisons(condition, std::nullopt, piece.comparisons)) {
    piece.stride = *true_stride;
    return piece;
  }
  return take(false) || take(true) ? std::optional(piece) : std::nullopt;
}

// Whether the value, as an address is computed from it, depends on a piece.
bool Widener::has_piece(Value* value) { return !pieces_in(value).empty(); }

SmallVector<Instruction*> Widener::pieces_in(Value* value) {
  SmallVector<Instruction*> pieces;
  SmallVector<Value*> left{value};
  SmallPtrSet<Value*, 16> seen;
  while (!left.empty()) {
    Value* next = left.pop_back_val();
    auto* instruction = dyn_cast<Instruction>(next);
    if (!instruction || !lanes_.is_divergent(next) || is_lane(next) || isa<PHINode>(instruction) ||
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

// The value in a lane of a simdgroup that fulfils the piece's condition.
Value* Widener::at_lane_of_piece(Instruction& instruction, const Piece& piece, unsigned lane, IRBuilder<>& builder) {
  if (piece.dividend) {
    Value *number = at_lane(piece.dividend, lane, builder), *first = at_lane(piece.dividend, 0, builder);
    return builder.CreateAdd(remainder_of(instruction, first, builder), builder.CreateSub(number, first));
  }
  if (piece.side) {
    Value* one = at_lane(piece.side, lane, builder);
    return piece.subtracted ? builder.CreateSub(one, lanes_.scalar(piece.subtracted)) : one;
  }
  // All lanes are on the side of the first.
  Value* condition = at_lane(instruction.getOperand(0), 0, builder);
  if (!isa<SelectInst>(instruction))
    return builder.CreateCast(cast<CastInst>(instruction).getOpcode(), condition, instruction.getType());
  return builder.CreateSelect(condition, at_lane(instruction.getOperand(1), lane, builder),
                              at_lane(instruction.getOperand(2), lane, builder));
}

// As unsigned numbers: the piece's condition requires that neither is negative.
Value* Widener::remainder_of(Instruction& instruction, Value* number, IRBuilder<>& builder) {
  Value* divisor = lanes_.scalar(instruction.getOperand(1));
  return is_remainder(instruction) ? builder.CreateURem(number, divisor) : builder.CreateAnd(number, divisor);
}

// Whether all lanes are on the sides of the pieces in the value.
Value* Widener::check_pieces(Value* value, CheckedPieces& checked, IRBuilder<>& builder) {
  Value* all = builder.getTrue();
  for (Instruction* piece : pieces_in(value)) all = builder.CreateAnd(all, check_piece(*piece, checked, builder));
  return all;
}

// Whether all lanes are on the piece's side.
Value* Widener::check_piece(Instruction& instruction, CheckedPieces& checked, IRBuilder<>& builder) {
  if (auto found = checked.find(&instruction); found != checked.end()) return found->second;
  const Piece piece = *piece_of(instruction);
  Value* all = builder.getTrue();
  auto require = [&](Value* what) { all = builder.CreateAnd(all, what); };
  // From the first lane to the last numbers do not wrap, as numbers with a sign or without.
  auto ends_of = [&](Value* number, bool is_signed) {
    require(check_stride(number, checked, builder));
    Value *first = at_lane(number, 0, builder), *last = at_lane(number, kLanes - 1, builder);
    require(builder.CreateICmp(is_signed ? CmpInst::ICMP_SLE : CmpInst::ICMP_ULE, first, last));
    return std::pair(first, last);
  };
  for (const LaneComparison& comparison : piece.comparisons) {
    Value* limit = lanes_.scalar(comparison.limit);
    auto [first, last] = ends_of(comparison.number, CmpInst::isSigned(comparison.predicate));
    if (CmpInst::isEquality(comparison.predicate)) {
      require(builder.CreateICmpUGT(builder.CreateSub(limit, first), builder.CreateSub(last, first)));
      continue;
    }
    Value* at_first = builder.CreateICmp(comparison.predicate, first, limit);
    Value* at_last = builder.CreateICmp(comparison.predicate, last, limit);
    if (comparison.value) {
      require(*comparison.value ? at_first : builder.CreateNot(at_first));
      require(*comparison.value ? at_last : builder.CreateNot(at_last));
    } else {
      require(builder.CreateICmpEQ(at_first, at_last));
    }
  }
  if (piece.dividend) {
    auto [first, last] = ends_of(piece.dividend, /*is_signed=*/false);
    Value* divisor = lanes_.scalar(instruction.getOperand(1));
    if (instruction.getOpcode() == Instruction::SRem) {
      // The last number is not below the first.
      Value* zero = ConstantInt::get(divisor->getType(), 0);
      require(builder.CreateICmpSGE(last, zero));
      require(builder.CreateICmpSGT(divisor, zero));
    }
    Value* remainder = remainder_of(instruction, first, builder);
    Value* largest =
        is_remainder(instruction) ? builder.CreateSub(divisor, ConstantInt::get(divisor->getType(), 1)) : divisor;
    require(builder.CreateICmpULE(remainder, largest));
    require(builder.CreateICmpULE(builder.CreateSub(last, first), builder.CreateSub(largest, remainder)));
  }
  return checked[&instruction] = all;
}

// Loads at a border, for elements that are not gathered: the lanes that are on the side of the pieces with one masked
// load, the others one by one. Which these are the addresses tell.
void Widener::load_beside_border(LoadInst& load, IRBuilder<>& builder) {
  auto [allowed, address] = guarded_address_of(load);
  const uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  Type *number = builder.getInt64Ty(), *type = vector_of(load.getType());
  SmallVector<Constant*> steps;
  for (unsigned lane = 0; lane < kLanes; ++lane) steps.push_back(builder.getInt64(lane * bytes));
  Value* first = at_lane(address, 0, builder);
  Value* expected = builder.CreateAdd(builder.CreateVectorSplat(kLanes, builder.CreatePtrToInt(first, number)),
                                      ConstantVector::get(steps));
  Value* in_line =
      builder.CreateICmpEQ(builder.CreatePtrToInt(lanes_.vector(address, builder), vector_of(number)), expected);
  Value* all = lanes_.mask();
  Value* mask = lanes_.narrowed(all, in_line, builder);
  if (allowed) mask = lanes_.narrowed(mask, lanes_.vector(allowed, builder), builder);
  Value* loaded = builder.CreateMaskedLoad(type, first, load.getAlign(), mask, Constant::getNullValue(type));
  lanes_.set_mask(lanes_.narrowed(all, builder.CreateNot(in_line), builder));
  for_each_lane(load, builder);
  lanes_.set_mask(all);
  lanes_.set_vector(&load, builder.CreateSelect(in_line, loaded, lanes_.known_vector(&load)));
}

}  // namespace kiln::widening
