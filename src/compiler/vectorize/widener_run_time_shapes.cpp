// Loads and stores whose lanes may turn out to be consecutive when the code runs.
//
// Problem: where the step from lane to lane is not known when the kernel is compiled, an access is a gather, a scatter,
// or a loop over lanes. Mostly the lanes are consecutive all the same: an index through max, min, clamp or a remainder
// is so everywhere but at a border, and in a threadgroup of 16 threads a row each half of a simdgroup is.
//
// Idea: an address is a sum of uniform values and of a few numbers that differ between lanes (LaneSum). The sum of the
// latter, in elements, is a vector that is compared with its first element plus 0, 1, 2, …, for each part of a
// simdgroup that fills a register of words. A bounds check of consecutive elements is one of the first of them. If all
// parts pass, each is one load or store.
//
// The sum is computed in 32 bits, as a rule. One number that is extended is tested before that: consecutive numbers
// stay so if the narrow ones do not wrap, which the first of them tells. Several are added only if all are small.
//
// A quotient, as in `weights[i / columns]`, is tested for being the same in each part instead: then each is one load of
// one element.
//
// Rejected: an analysis that proves steps of 0 or 1 through min, max and remainders, so that the first and the last
// lane suffice. It knows some operations, this all of them; and the vector is there. A branch for each part: four times
// the code, and few parts fail where any pass.
//
// Complexity: an address is followed once for each access, through at most kMostSteps operations.
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>

#include <algorithm>
#include <numeric>

#include "compiler/vectorize/widener.h"

namespace kiln::widening {

namespace {

constexpr unsigned kMostSteps = 32;
constexpr size_t kMostTerms = 3;

// Accesses of a function that are tested. Each has two paths, which bodies of hundreds of accesses would take long to
// compile for.
constexpr unsigned kMostTested = 48;

constexpr int64_t kMaxFactor = 1 << 20;

// Sums of several extended numbers are exact in 32 bits if each is smaller, and factors add up to less.
constexpr unsigned kSmallBits = 20, kFactorBits = 10;

}  // namespace

// By what a sum's terms are multiplied if this is done to it: 1 for additions. Nothing: it is a term itself.
std::optional<int64_t> Widener::scale_of_step(const Instruction& step) const {
  const bool is_wide = layout_.getTypeSizeInBits(step.getType()) == 64;
  switch (step.getOpcode()) {
    case Instruction::GetElementPtr:
    case Instruction::PtrToInt:
    case Instruction::IntToPtr:
    case Instruction::Add:
    case Instruction::Sub: return is_wide ? std::optional<int64_t>(1) : std::nullopt;
    case Instruction::Mul:
    case Instruction::Shl: {
      const auto* by = dyn_cast<ConstantInt>(step.getOperand(1));
      const bool is_shift = step.getOpcode() == Instruction::Shl;
      if (!is_wide || !by || by->getValue().getActiveBits() > 16 || (is_shift && by->getZExtValue() > 16))
        return std::nullopt;
      return static_cast<int64_t>(is_shift ? uint64_t{1} << by->getZExtValue() : by->getZExtValue());
    }
    default: return std::nullopt;
  }
}

// Adds what differs between lanes in a number of 64 bits or an address, times `factor`, to the terms. False where there
// are too many, or others than numbers.
bool Widener::add_terms(Value* value, int64_t factor, LaneSum& sum, unsigned& steps) {
  if (!is_divergent(value)) return true;
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || ++steps > kMostSteps || std::abs(factor) > kMaxFactor) return false;
  auto add_term = [&](Value* number, std::optional<unsigned> extension, int64_t by) {
    // Of fewer bits, the steps of a part would wrap.
    const auto* type = dyn_cast<IntegerType>(number->getType());
    if (!type || type->getBitWidth() < 8 || (!extension && type->getBitWidth() != 64)) return false;
    for (LaneTerm& term : sum.terms)
      if (term.number == number && term.extension == extension) {
        term.factor += by;
        return true;
      }
    sum.terms.push_back({number, extension, by});
    return sum.terms.size() <= kMostTerms;
  };
  const unsigned opcode = instruction->getOpcode();
  const auto operand = [&](unsigned i) { return instruction->getOperand(i); };
  const std::optional<int64_t> scale = scale_of_step(*instruction);
  if (!scale) {
    if (opcode == Instruction::ZExt || opcode == Instruction::SExt) return add_term(operand(0), opcode, factor);
    return add_term(value, std::nullopt, factor);
  }
  if (opcode == Instruction::GetElementPtr) {
    if (!add_terms(operand(0), factor, sum, steps)) return false;
    auto level = gep_type_begin(instruction);
    for (unsigned i = 1; i < instruction->getNumOperands(); ++i, ++level) {
      if (!is_divergent(operand(i))) continue;
      const uint64_t size = level.getSequentialElementStride(layout_);
      if (size > static_cast<uint64_t>(kMaxFactor)) return false;
      const int64_t by = factor * static_cast<int64_t>(size);
      // An address extends a narrow index itself.
      const bool is_added = operand(i)->getType()->isIntegerTy(64) ? add_terms(operand(i), by, sum, steps)
                                                                   : add_term(operand(i), Instruction::SExt, by);
      if (!is_added) return false;
    }
    return true;
  }
  if (!add_terms(operand(0), factor * *scale, sum, steps)) return false;
  if (opcode == Instruction::Add) return add_terms(operand(1), factor, sum, steps);
  if (opcode == Instruction::Sub) return add_terms(operand(1), -factor, sum, steps);
  return true;
}

// The value in a lane whose terms are all 0.
Value* Widener::without_terms(Value* value, IRBuilder<>& builder) {
  if (!is_divergent(value)) return scalar(value);
  auto* instruction = cast<Instruction>(value);
  const bool is_wide = layout_.getTypeSizeInBits(value->getType()) == 64;
  if (!is_wide || !scale_of_step(*instruction)) return Constant::getNullValue(value->getType());
  SmallVector<Value*> operands;
  for (Value* operand : instruction->operands()) operands.push_back(without_terms(operand, builder));
  Instruction* copy = with_operands(*instruction, operands);
  copy->dropPoisonGeneratingFlags();
  return builder.Insert(copy);
}

// Small constants that are added to numbers before those are extended: so sums at constant distances, as a stencil's,
// have the same terms, which are tested once. That holds of numbers as small as sums_of() demands.
void Widener::take_out_constants(LaneSum& sum) {
  for (LaneTerm& term : sum.terms) {
    auto* added = dyn_cast<Instruction>(term.number);
    auto* constant = added && added->getOpcode() == Instruction::Add && added->getType()->isIntegerTy(32)
                         ? dyn_cast<ConstantInt>(added->getOperand(1))
                         : nullptr;
    const int64_t by = constant ? constant->getSExtValue() : 0;
    const bool is_exact = std::abs(by) < int64_t{1} << kSmallBits && (term.extension == Instruction::SExt || by >= 0);
    if (constant && is_exact) {
      sum.constant += by * term.factor;
      term.number = added->getOperand(0);
    }
    // A small word that is not negative is extended to the same number in both ways.
    if (term.number->getType()->isIntegerTy(32)) term.extension = Instruction::ZExt;
  }
}

std::optional<Widener::LaneSum> Widener::lane_sum_of(Value* value, uint64_t bytes) {
  LaneSum sum{value, {}, 0, false};
  unsigned steps = 0;
  if (!add_terms(value, 1, sum, steps)) return std::nullopt;
  erase_if(sum.terms, [](const LaneTerm& term) { return term.factor == 0; });
  const auto size = static_cast<int64_t>(bytes);
  uint64_t factors = 0;
  int64_t common = 0;
  for (LaneTerm& term : sum.terms) {
    if (term.factor % size != 0) return std::nullopt;
    term.factor /= size;
    factors += static_cast<uint64_t>(std::abs(term.factor));
    common = std::gcd(common, term.factor);
  }
  sum.is_quotient =
      !sum.terms.empty() && all_of(sum.terms, [&](const LaneTerm& term) { return is_quotient(term.number); });
  // Lanes with a common factor are never consecutive.
  if (common != 1 && !sum.is_quotient) return std::nullopt;
  if (factors >= uint64_t{1} << kFactorBits) return std::nullopt;
  if (sum.is_sum_of_small()) take_out_constants(sum);
  return sum;
}

// Whether a number is the quotient of a division or shift, but for what all lanes have: as a row's or channel's, it is
// mostly the same in neighbouring lanes.
bool Widener::is_quotient(Value* number) const {
  for (unsigned steps = 0; steps < kMostSteps; ++steps) {
    auto* instruction = dyn_cast<Instruction>(number);
    if (!instruction) return false;
    switch (instruction->getOpcode()) {
      case Instruction::UDiv:
      case Instruction::SDiv:
      case Instruction::LShr:
      case Instruction::AShr: return true;
      case Instruction::Add:
      case Instruction::Sub:
      case Instruction::Mul:
      case Instruction::Shl:
      case Instruction::Or:
      case Instruction::ZExt:
      case Instruction::SExt:
      case Instruction::Trunc: {
        auto is_other = [&](const Use& operand) { return is_divergent(operand.get()); };
        if (count_if(instruction->operands(), is_other) != 1) return false;
        number = *find_if(instruction->operands(), is_other);
        break;
      }
      default: return false;
    }
  }
  return false;
}

// Whether a number is computed from the thread's position, and not from what is in memory alone. The latter's lanes, as
// a list's or a graph's indices, are rarely consecutive.
bool Widener::has_position(Value* number) const {
  SmallVector<Value*> left{number};
  SmallPtrSet<Value*, 16> seen;
  while (!left.empty()) {
    Value* value = left.pop_back_val();
    if (!is_divergent(value) || isa<LoadInst>(value) || !seen.insert(value).second) continue;
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || is_lane(value) || instruction->mayReadOrWriteMemory() || seen.size() > kMostSteps) return true;
    append_range(left, instruction->operand_values());
  }
  return false;
}

// Whether lanes' addresses may be consecutive although that is not known.
std::optional<Widener::RunTimeShape> Widener::run_time_shape(Instruction& access, Type* type) {
  auto [allowed, address] = guarded_address_of(access);
  const uint64_t bytes = layout_.getTypeStoreSize(type);
  if (type->isIntegerTy(1) || !VectorType::isValidElementType(type) || bytes != layout_.getTypeAllocSize(type) ||
      stride_of(address))
    return std::nullopt;
  if (num_tested_ == kMostTested) return std::nullopt;
  // Lanes' variables are apart.
  if (isa<AllocaInst>(getUnderlyingObject(address))) return std::nullopt;
  std::optional<LaneSum> sum = lane_sum_of(address, bytes);
  if (!sum || none_of(sum->terms, [&](const LaneTerm& term) { return has_position(term.number); })) return std::nullopt;
  RunTimeShape shape{std::move(*sum), std::nullopt, allowed, nullptr, bytes, std::max(isa_.num_words(), 8U)};
  if (allowed && is_divergent(allowed)) {
    auto* comparison = dyn_cast<ICmpInst>(allowed);
    if (!comparison) return std::nullopt;
    const bool is_swapped = comparison->getPredicate() == ICmpInst::ICMP_UGT;
    if (!is_swapped && comparison->getPredicate() != ICmpInst::ICMP_ULT) return std::nullopt;
    Value* offset = comparison->getOperand(is_swapped ? 1 : 0);
    shape.limit = comparison->getOperand(is_swapped ? 0 : 1);
    if (is_divergent(shape.limit) || !offset->getType()->isIntegerTy(64)) return std::nullopt;
    shape.offset = lane_sum_of(offset, bytes);
    if (!shape.offset || !shape.offset->has_terms_of(shape.address.terms)) return std::nullopt;
  }
  return shape;
}

// The lanes' sums in elements, of which consecutive ones are to be found; and what all lanes must fulfil besides, as a
// vector of i1, or null.
std::pair<Value*, Value*> Widener::sums_of(const LaneSum& sum, IRBuilder<>& builder) {
  // What inactive lanes have may be poison.
  auto lanes_of = [&](const LaneTerm& term) {
    Value* lanes = vector(term.number, builder);
    return is_all(mask_) ? lanes : builder.CreateFreeze(lanes);
  };
  if (sum.is_one_number()) return {lanes_of(sum.terms[0]), nullptr};
  const bool is_narrow = sum.is_sum_of_small();
  Type* type = vector_of(is_narrow ? builder.getInt32Ty() : builder.getInt64Ty());
  Value *total = nullptr, *bits = nullptr;
  for (const LaneTerm& term : sum.terms) {
    Value* lanes = lanes_of(term);
    if (term.extension && lanes->getType() != type)
      lanes = builder.CreateCast(static_cast<Instruction::CastOps>(*term.extension), lanes, type);
    bits = bits ? builder.CreateOr(bits, lanes) : lanes;
    if (term.factor != 1)
      lanes = builder.CreateMul(lanes, ConstantInt::get(type, static_cast<uint64_t>(term.factor), true));
    total = total ? builder.CreateAdd(total, lanes) : lanes;
  }
  if (!is_narrow) return {total, nullptr};
  return {total, builder.CreateICmpULT(bits, ConstantInt::get(type, uint64_t{1} << kSmallBits))};
}

// Tests whether the lanes of each part are consecutive, or all the same if they are quotients, once for all sums of the
// same terms in a block.
const Widener::TestedSum& Widener::tested(const LaneSum& sum, unsigned width, IRBuilder<>& builder) {
  auto found = find_if(tested_sums_, [&](const TestedSum& made) { return sum.has_terms_of(made.terms); });
  if (found != tested_sums_.end()) return *found;
  auto [numbers, are_small] = sums_of(sum, builder);
  auto* number = cast<IntegerType>(numbers->getType()->getScalarType());
  SmallVector<Constant*> steps;
  for (unsigned i = 0; i < width; ++i) steps.push_back(ConstantInt::get(number, sum.is_quotient ? 0 : i));
  Value* passed = nullptr;
  auto require = [&](Value* what) { passed = passed ? builder.CreateAnd(passed, what) : what; };
  TestedSum made{sum.terms, nullptr, {}};
  for (unsigned lane = 0; lane < kLanes; lane += width) {
    const auto part = createSequentialMask(lane, width, 0);
    Value* first = builder.CreateShuffleVector(numbers, SmallVector<int>(width, static_cast<int>(lane)));
    Value* distance = builder.CreateSub(builder.CreateShuffleVector(numbers, part), first);
    require(builder.CreateICmpEQ(distance, ConstantVector::get(steps)));
    if (are_small) require(builder.CreateShuffleVector(are_small, part));
    made.firsts.push_back(builder.CreateExtractElement(numbers, lane));
  }
  made.condition = builder.CreateICmpEQ(builder.CreateBitCast(passed, builder.getIntNTy(width)),
                                        ConstantInt::getAllOnesValue(builder.getIntNTy(width)));
  tested_sums_.push_back(std::move(made));
  return tested_sums_.back();
}

// The same, with the first sums as numbers of 64 bits. What is added to one number in all lanes is added to the first
// ones alone, so that the rows of a stencil are tested once.
Widener::TestedSum Widener::tested_and_extended(const LaneSum& sum, unsigned width, IRBuilder<>& builder) {
  const LaneTerm& only = sum.terms[0];
  const bool is_one = sum.is_one_number();
  LaneSum inner = sum;
  SmallVector<Instruction*> added;
  if (is_one) {
    Value*& number = inner.terms[0].number;
    inner.terms[0].extension.reset();
    while (auto* step = dyn_cast<Instruction>(number)) {
      const bool is_sum = step->getOpcode() == Instruction::Add, is_difference = step->getOpcode() == Instruction::Sub;
      if (!is_sum && !is_difference) break;
      if (is_divergent(step->getOperand(0)) == is_divergent(step->getOperand(1))) break;
      if (is_difference && is_divergent(step->getOperand(1))) break;
      added.push_back(step);
      number = step->getOperand(is_divergent(step->getOperand(0)) ? 0 : 1);
    }
  }
  TestedSum result = tested(inner, width, builder);
  const bool is_signed = !is_one || only.extension == Instruction::SExt;
  // Consecutive numbers that are not negative do not wrap as unsigned ones. That is known of active lanes only.
  const bool may_wrap = is_one && only.extension && !sum.is_quotient &&
                        (is_signed || !is_all(mask_) || !computeKnownBits(only.number, layout_).isNonNegative());
  const unsigned bits = result.firsts[0]->getType()->getIntegerBitWidth();
  const APInt most = (is_signed ? APInt::getSignedMaxValue(bits) : APInt::getMaxValue(bits)) - (width - 1);
  for (Value*& first : result.firsts) {
    for (Instruction* step : reverse(added)) {
      const bool is_left = is_divergent(step->getOperand(0));
      Value* uniform = scalar(step->getOperand(is_left ? 1 : 0));
      first = builder.CreateBinOp(static_cast<Instruction::BinaryOps>(step->getOpcode()), first, uniform);
    }
    if (may_wrap)
      result.condition = builder.CreateAnd(
          result.condition,
          builder.CreateICmp(is_signed ? CmpInst::ICMP_SLE : CmpInst::ICMP_ULE, first, builder.getInt(most)));
    first =
        is_signed ? builder.CreateSExt(first, builder.getInt64Ty()) : builder.CreateZExt(first, builder.getInt64Ty());
  }
  return result;
}

// Emits both ways to access memory; `in_parts` gets the address of each part.
Widener::Values Widener::emit_by_run_time_shape(const RunTimeShape& shape, IRBuilder<>& builder,
                                                function_ref<Values(ArrayRef<Value*>)> in_parts, Emitter scalarized) {
  ++num_tested_;
  const TestedSum test = tested_and_extended(shape.address, shape.part_lanes, builder);
  Value* condition = test.condition;
  auto require = [&](Value* what) { condition = builder.CreateAnd(condition, what); };
  // From the value whose terms are 0.
  auto distance = [&](const LaneSum& sum, Value* first) {
    return builder.CreateMul(builder.CreateAdd(first, builder.getInt64(static_cast<uint64_t>(sum.constant))),
                             builder.getInt64(shape.bytes));
  };
  if (shape.offset) {
    Value* base = without_terms(shape.offset->value, builder);
    const unsigned last = shape.address.is_quotient ? 0 : shape.part_lanes - 1;
    Value* limit = reduced_limit(scalar(shape.limit), last * shape.bytes);
    for (Value* first : test.firsts)
      require(builder.CreateICmpULT(builder.CreateAdd(base, distance(*shape.offset, first)), limit));
  } else if (shape.allowed) {
    require(scalar(shape.allowed));
  }
  if (!is_all(mask_) && (shape.address.is_quotient || !can_mask(shape.bytes)))
    require(builder.CreateICmpEQ(builder.CreateBitCast(mask_, builder.getInt32Ty()), builder.getInt32(-1)));
  auto fast_path = [&] {
    Value* base = without_terms(shape.address.value, builder);
    SmallVector<Value*> addresses;
    for (Value* first : test.firsts)
      addresses.push_back(builder.CreateGEP(builder.getInt8Ty(), base, distance(shape.address, first)));
    return in_parts(addresses);
  };
  return create_if_else({condition, "parts", "lanes", false}, builder, fast_path, scalarized);
}

bool Widener::load_by_run_time_shape(LoadInst& load, IRBuilder<>& builder) {
  std::optional<RunTimeShape> shape = run_time_shape(load, load.getType());
  if (!shape) return false;
  Type* type = FixedVectorType::get(load.getType(), shape->part_lanes);
  auto in_parts = [&](ArrayRef<Value*> addresses) -> Values {
    Values parts;
    for (auto [i, address] : enumerate(addresses)) {
      if (shape->address.is_quotient) {
        LoadInst* one = builder.CreateAlignedLoad(load.getType(), address, load.getAlign());
        one->copyMetadata(load, {LLVMContext::MD_invariant_load});
        parts.push_back(builder.CreateVectorSplat(shape->part_lanes, one));
        continue;
      }
      if (is_all(mask_) || !can_mask(shape->bytes)) {
        parts.push_back(load_part(load, shape->part_lanes, address, builder));
        continue;
      }
      Value* mask = builder.CreateShuffleVector(
          mask_, createSequentialMask(static_cast<unsigned>(i) * shape->part_lanes, shape->part_lanes, 0));
      parts.push_back(builder.CreateMaskedLoad(type, address, load.getAlign(), mask, Constant::getNullValue(type)));
    }
    return {concatenateVectors(builder, parts)};
  };
  auto scalarized = [&]() -> Values {
    widen_load_scalarized(load, builder);
    return {vectors_[&load]};
  };
  vectors_[&load] = emit_by_run_time_shape(*shape, builder, in_parts, scalarized)[0];
  return true;
}

bool Widener::store_by_run_time_shape(StoreInst& store, IRBuilder<>& builder) {
  std::optional<RunTimeShape> shape = run_time_shape(store, store.getValueOperand()->getType());
  if (!shape || shape->address.is_quotient) return false;
  Value* lanes = vector(store.getValueOperand(), builder);
  // Parts that overlap are stored in the order of lanes.
  auto in_parts = [&](ArrayRef<Value*> addresses) -> Values {
    for (auto [i, address] : enumerate(addresses)) {
      const auto part = createSequentialMask(static_cast<unsigned>(i) * shape->part_lanes, shape->part_lanes, 0);
      Value* stored = builder.CreateShuffleVector(lanes, part);
      if (is_all(mask_) || !can_mask(shape->bytes))
        builder.CreateAlignedStore(stored, address, store.getAlign());
      else
        builder.CreateMaskedStore(stored, address, store.getAlign(), builder.CreateShuffleVector(mask_, part));
    }
    return {};
  };
  auto scalarized = [&]() -> Values {
    widen_store_scalarized(store, builder);
    return {};
  };
  emit_by_run_time_shape(*shape, builder, in_parts, scalarized);
  return true;
}

}  // namespace kiln::widening
