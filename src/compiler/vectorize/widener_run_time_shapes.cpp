#include "compiler/vectorize/widener_run_time_shapes.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>

#include <algorithm>

#include "compiler/vectorize/widener_guards.h"

namespace kiln::widening {

namespace {

// Accesses of a function that are tested. Each has two paths, which bodies of hundreds of accesses would take long to
// compile for.
constexpr unsigned kMostTested = 48;

}  // namespace

// Whether lanes' addresses may be consecutive although that is not known.
std::optional<RunTimeShapes::Shape> RunTimeShapes::shape_of(Instruction& access, Type* type) {
  auto [allowed, address] = guarded_address_of(access);
  const uint64_t bytes = layout_.getTypeStoreSize(type);
  if (type->isIntegerTy(1) || !VectorType::isValidElementType(type) || bytes != layout_.getTypeAllocSize(type) ||
      strides_.stride_of(address))
    return std::nullopt;
  if (num_tested_ == kMostTested) return std::nullopt;
  // Lanes' variables are apart.
  if (isa<AllocaInst>(getUnderlyingObject(address))) return std::nullopt;
  std::optional<LaneSum> sum = lane_sums_.lane_sum_of(address, bytes);
  if (!sum || none_of(sum->terms, [&](const LaneTerm& term) { return lane_sums_.has_position(term.number); }))
    return std::nullopt;
  Shape shape{std::move(*sum),      std::nullopt, allowed, nullptr, bytes, std::max(isa_.num_words(), 8U),
              isa<LoadInst>(access)};
  if (allowed && lanes_.is_divergent(allowed)) {
    std::optional<LaneGuard> guard = lane_guard_of(allowed, flow_);
    if (!guard) return std::nullopt;
    shape.limit = guard->limit;
    shape.offset = lane_sums_.lane_sum_of(guard->offset, bytes);
    if (!shape.offset || !shape.offset->has_terms_of(shape.address.terms)) return std::nullopt;
  }
  return shape;
}

// The value in a lane whose terms are all 0.
Value* RunTimeShapes::without_terms(Value* value, IRBuilder<>& builder) {
  if (!lanes_.is_divergent(value)) return lanes_.scalar(value);
  auto* instruction = cast<Instruction>(value);
  const bool is_wide = layout_.getTypeSizeInBits(value->getType()) == 64;
  if (!is_wide || !lane_sums_.scale_of_step(*instruction)) return Constant::getNullValue(value->getType());
  SmallVector<Value*> operands;
  for (Value* operand : instruction->operands()) operands.push_back(without_terms(operand, builder));
  Instruction* copy = with_operands(*instruction, operands);
  copy->dropPoisonGeneratingFlags();
  return builder.Insert(copy);
}

// The lanes' sums in elements, of which consecutive ones are to be found; and what all lanes must fulfil besides, as a
// vector of i1, or null.
std::pair<Value*, Value*> RunTimeShapes::sums_of(const LaneSum& sum, IRBuilder<>& builder) {
  // What inactive lanes have may be poison.
  auto lanes_of = [&](const LaneTerm& term) {
    Value* lanes = lanes_.vector(term.number, builder);
    return is_all(lanes_.mask()) ? lanes : builder.CreateFreeze(lanes);
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
  return {total, builder.CreateICmpULT(bits, ConstantInt::get(type, uint64_t{1} << LaneSum::kSmallBits))};
}

// Tests whether the lanes of each part are consecutive, or all the same if they are quotients, once for all sums of the
// same terms in a block.
const RunTimeShapes::TestedSum& RunTimeShapes::tested(const LaneSum& sum, unsigned width, IRBuilder<>& builder) {
  // What a block or a side of a branch tests is not known after it.
  erase_if(tested_sums_, [&](const TestedSum& made) { return !lanes_.is_in_scope(made.scope); });
  auto found = find_if(tested_sums_, [&](const TestedSum& made) { return sum.has_terms_of(made.terms); });
  if (found != tested_sums_.end()) return *found;
  auto [numbers, are_small] = sums_of(sum, builder);
  auto* number = cast<IntegerType>(numbers->getType()->getScalarType());
  SmallVector<Constant*> steps;
  for (unsigned i = 0; i < width; ++i) steps.push_back(ConstantInt::get(number, sum.is_quotient ? 0 : i));
  Value* passed = nullptr;
  auto require = [&](Value* what) { passed = passed ? builder.CreateAnd(passed, what) : what; };
  TestedSum made{sum.terms, nullptr, {}, lanes_.scope()};
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
RunTimeShapes::TestedSum RunTimeShapes::tested_and_extended(const LaneSum& sum, unsigned width, IRBuilder<>& builder) {
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
      if (lanes_.is_divergent(step->getOperand(0)) == lanes_.is_divergent(step->getOperand(1))) break;
      if (is_difference && lanes_.is_divergent(step->getOperand(1))) break;
      added.push_back(step);
      number = step->getOperand(lanes_.is_divergent(step->getOperand(0)) ? 0 : 1);
    }
  }
  TestedSum result = tested(inner, width, builder);
  const bool is_signed = !is_one || only.extension == Instruction::SExt;
  // Consecutive numbers that are not negative do not wrap as unsigned ones. That is known of active lanes only.
  const bool may_wrap =
      is_one && only.extension && !sum.is_quotient &&
      (is_signed || !is_all(lanes_.mask()) || !computeKnownBits(only.number, layout_).isNonNegative());
  const unsigned bits = result.firsts[0]->getType()->getIntegerBitWidth();
  const APInt most = (is_signed ? APInt::getSignedMaxValue(bits) : APInt::getMaxValue(bits)) - (width - 1);
  for (Value*& first : result.firsts) {
    for (Instruction* step : reverse(added)) {
      const bool is_left = lanes_.is_divergent(step->getOperand(0));
      Value* uniform = lanes_.scalar(step->getOperand(is_left ? 1 : 0));
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
Values RunTimeShapes::emit_by_shape(const Shape& shape, IRBuilder<>& builder,
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
    Value* limit = checks_.reduced_limit(lanes_.scalar(shape.limit), last * shape.bytes);
    for (Value* first : test.firsts)
      require(builder.CreateICmpULT(builder.CreateAdd(base, distance(*shape.offset, first)), limit));
  } else if (shape.allowed) {
    require(lanes_.scalar(shape.allowed));
  }
  // Elements in bounds may be loaded for inactive lanes too.
  const bool may_load_more = shape.is_load && shape.offset;
  if (!is_all(lanes_.mask()) && !may_load_more && (shape.address.is_quotient || !lanes_.can_mask(shape.bytes)))
    require(lanes_.all_active(builder));
  auto fast_path = [&] {
    Value* base = without_terms(shape.address.value, builder);
    SmallVector<Value*> addresses;
    for (Value* first : test.firsts)
      addresses.push_back(builder.CreateGEP(builder.getInt8Ty(), base, distance(shape.address, first)));
    return in_parts(addresses);
  };
  return lanes_.create_if_else({condition, "parts", "lanes", false}, builder, fast_path, scalarized);
}

bool RunTimeShapes::load(LoadInst& load, IRBuilder<>& builder) {
  std::optional<Shape> shape = shape_of(load, load.getType());
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
      if (is_all(lanes_.mask()) || !lanes_.can_mask(shape->bytes)) {
        parts.push_back(strided_.load_part(load, shape->part_lanes, address, builder));
        continue;
      }
      Value* mask = builder.CreateShuffleVector(
          lanes_.mask(), createSequentialMask(static_cast<unsigned>(i) * shape->part_lanes, shape->part_lanes, 0));
      parts.push_back(builder.CreateMaskedLoad(type, address, load.getAlign(), mask, Constant::getNullValue(type)));
    }
    return {concatenateVectors(builder, parts)};
  };
  auto scalarized = [&]() -> Values {
    lane_accesses_.load(load, builder);
    return {lanes_.known_vector(&load)};
  };
  lanes_.set_vector(&load, emit_by_shape(*shape, builder, in_parts, scalarized)[0]);
  return true;
}

bool RunTimeShapes::store(StoreInst& store, IRBuilder<>& builder) {
  std::optional<Shape> shape = shape_of(store, store.getValueOperand()->getType());
  if (!shape || shape->address.is_quotient) return false;
  Value* lanes = lanes_.vector(store.getValueOperand(), builder);
  // Parts that overlap are stored in the order of lanes.
  auto in_parts = [&](ArrayRef<Value*> addresses) -> Values {
    for (auto [i, address] : enumerate(addresses)) {
      const auto part = createSequentialMask(static_cast<unsigned>(i) * shape->part_lanes, shape->part_lanes, 0);
      Value* stored = builder.CreateShuffleVector(lanes, part);
      if (is_all(lanes_.mask()) || !lanes_.can_mask(shape->bytes))
        builder.CreateAlignedStore(stored, address, store.getAlign());
      else
        builder.CreateMaskedStore(stored, address, store.getAlign(), builder.CreateShuffleVector(lanes_.mask(), part));
    }
    return {};
  };
  auto scalarized = [&]() -> Values {
    lane_accesses_.store(store, builder);
    return {};
  };
  emit_by_shape(*shape, builder, in_parts, scalarized);
  return true;
}

}  // namespace kiln::widening
