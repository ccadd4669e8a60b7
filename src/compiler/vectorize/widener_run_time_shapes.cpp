#include "compiler/vectorize/widener_run_time_shapes.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>

#include <algorithm>

#include "compiler/ir/sections.h"
#include "compiler/vectorize/widener_guards.h"

namespace kiln::widening {

// Whether lanes' addresses may be consecutive although that is not known.
std::optional<RunTimeShapes::Shape> RunTimeShapes::shape_of(Instruction& access, Type* type, int64_t most_scale) {
  auto [allowed, address] = guarded_address_of(access);
  const uint64_t bytes = layout_.getTypeStoreSize(type);
  if (type->isIntegerTy(1) || !VectorType::isValidElementType(type) || bytes != layout_.getTypeAllocSize(type) ||
      strides_.stride_of(address))
    return std::nullopt;
  if (num_tested_ == kMostTestedAccesses) return std::nullopt;
  // Lanes' variables are apart.
  if (isa<AllocaInst>(getUnderlyingObject(address))) return std::nullopt;
  std::optional<LaneSum> sum = lane_sums_.lane_sum_of(address, bytes, most_scale);
  if (!sum || none_of(sum->terms, [&](const LaneTerm& term) { return lane_sums_.has_position(term.number); }))
    return std::nullopt;
  const uint64_t step = bytes * static_cast<uint64_t>(sum->scale);
  Shape shape{std::move(*sum),       std::nullopt, allowed, nullptr, step, std::max(isa_.num_words(), 8U),
              isa<LoadInst>(access), nullptr,      false,   {}};
  if (allowed && lanes_.is_divergent(allowed)) {
    std::optional<LaneGuard> guard = lane_guard_of(allowed, flow_);
    if (!guard) return std::nullopt;
    shape.limit = guard->limit;
    shape.offset = lane_sums_.lane_sum_of(guard->offset, bytes, most_scale);
    if (!shape.offset || !shape.offset->has_terms_of(shape.address.terms) || shape.offset->scale != shape.address.scale)
      return std::nullopt;
  }
  const auto* variable = dyn_cast<GlobalVariable>(getUnderlyingObject(address));
  if (variable && variable->getSection() == kThreadgroupSection) shape.variable = variable;
  shape.has_windows = has_windows(shape, address, type);
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
  // Bits that are disjoint with the terms may not be so without.
  if (instruction->getOpcode() == Instruction::Or) return builder.CreateAdd(operands[0], operands[1]);
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
  TestedSum made{sum.terms, numbers, are_small, nullptr, {}, lanes_.scope()};
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

// What is added to one number in all lanes is added to the first ones alone, so that the rows of a stencil are tested
// once.
RunTimeShapes::PeeledSum RunTimeShapes::peeled(const LaneSum& sum) const {
  PeeledSum result{sum, {}};
  if (!sum.is_one_number()) return result;
  LaneTerm& only = result.inner.terms[0];
  only.extension.reset();
  while (auto* step = dyn_cast<Instruction>(only.number)) {
    const bool is_sum = step->getOpcode() == Instruction::Add, is_difference = step->getOpcode() == Instruction::Sub;
    if (!is_sum && !is_difference) break;
    if (lanes_.is_divergent(step->getOperand(0)) == lanes_.is_divergent(step->getOperand(1))) break;
    if (is_difference && lanes_.is_divergent(step->getOperand(1))) break;
    result.added.push_back(step);
    only.number = step->getOperand(lanes_.is_divergent(step->getOperand(0)) ? 0 : 1);
  }
  return result;
}

// Makes `firsts`, the first of so many consecutive numbers each, numbers of 64 bits with what is added to all. If the
// narrow ones may wrap, the result is a condition that they do not; otherwise null.
Value* RunTimeShapes::extended(const LaneSum& sum, ArrayRef<Instruction*> added, MutableArrayRef<Value*> firsts,
                               unsigned width, bool may_wrap, IRBuilder<>& builder) {
  const bool is_one = sum.is_one_number(), is_signed = !is_one || sum.terms[0].extension == Instruction::SExt;
  may_wrap = may_wrap && is_one && sum.terms[0].extension;
  const unsigned bits = firsts[0]->getType()->getIntegerBitWidth();
  const APInt most = (is_signed ? APInt::getSignedMaxValue(bits) : APInt::getMaxValue(bits)) - (width - 1);
  Value* condition = nullptr;
  for (Value*& first : firsts) {
    for (Instruction* step : reverse(added)) {
      const bool is_left = lanes_.is_divergent(step->getOperand(0));
      Value* uniform = lanes_.scalar(step->getOperand(is_left ? 1 : 0));
      first = builder.CreateBinOp(static_cast<Instruction::BinaryOps>(step->getOpcode()), first, uniform);
    }
    if (may_wrap) {
      Value* fits = builder.CreateICmp(is_signed ? CmpInst::ICMP_SLE : CmpInst::ICMP_ULE, first, builder.getInt(most));
      condition = condition ? builder.CreateAnd(condition, fits) : fits;
    }
    first =
        is_signed ? builder.CreateSExt(first, builder.getInt64Ty()) : builder.CreateZExt(first, builder.getInt64Ty());
  }
  return condition;
}

// Whether consecutive numbers of lanes may wrap. Those that are not negative do not as unsigned ones, which is known of
// active lanes only.
bool RunTimeShapes::may_wrap(const LaneSum& sum) const {
  const LaneTerm& only = sum.terms[0];
  return only.extension == Instruction::SExt || !is_all(lanes_.mask()) ||
         !computeKnownBits(only.number, layout_).isNonNegative();
}

// The same test, with the first sums as numbers of 64 bits.
RunTimeShapes::TestedSum RunTimeShapes::tested_and_extended(const LaneSum& sum, unsigned width, IRBuilder<>& builder) {
  auto [inner, added] = peeled(sum);
  TestedSum result = tested(inner, width, builder);
  const bool wraps = !sum.is_quotient && may_wrap(sum);
  if (Value* fits = extended(sum, added, result.firsts, width, wraps, builder))
    result.condition = builder.CreateAnd(result.condition, fits);
  return result;
}

// In bytes, of an element of the sum from the value whose terms are 0.
Value* RunTimeShapes::distance(const Shape& shape, const LaneSum& sum, Value* first, IRBuilder<>& builder) const {
  return builder.CreateMul(builder.CreateAdd(first, builder.getInt64(static_cast<uint64_t>(sum.constant))),
                           builder.getInt64(shape.bytes));
}

// Emits both ways to access memory; `in_parts` gets the address of each part.
Values RunTimeShapes::emit_by_shape(const Shape& shape, IRBuilder<>& builder,
                                    function_ref<Values(ArrayRef<Value*>)> in_parts, Emitter scalarized) {
  ++num_tested_;
  const TestedSum test = tested_and_extended(shape.address, shape.part_lanes, builder);
  Value* condition = test.condition;
  auto require = [&](Value* what) { condition = builder.CreateAnd(condition, what); };
  if (shape.offset) {
    Value* base = without_terms(shape.offset->value, builder);
    const unsigned last = shape.address.is_quotient ? 0 : shape.part_lanes - 1;
    Value* limit = checks_.reduced_limit(lanes_.scalar(shape.limit), last * shape.bytes);
    for (Value* first : test.firsts)
      require(builder.CreateICmpULT(builder.CreateAdd(base, distance(shape, *shape.offset, first, builder)), limit));
  } else if (shape.allowed) {
    require(lanes_.scalar(shape.allowed));
  }
  for (const Shape& other : shape.others)
    require(are_in_bounds(other, test.firsts, builder.getInt64(shape.part_lanes - 1), builder));
  // Elements in bounds may be loaded for inactive lanes too.
  const bool may_load_more = shape.is_load && shape.offset;
  if (!is_all(lanes_.mask()) && !may_load_more && (shape.address.is_quotient || !lanes_.can_mask(shape.bytes)))
    require(lanes_.all_active(builder));
  auto fast_path = [&] {
    Value* base = without_terms(shape.address.value, builder);
    SmallVector<Value*> addresses;
    for (Value* first : test.firsts)
      addresses.push_back(builder.CreateGEP(builder.getInt8Ty(), base, distance(shape, shape.address, first, builder)));
    return in_parts(addresses);
  };
  return lanes_.create_if_else({condition, "parts", "lanes", false}, builder, fast_path, scalarized);
}

bool RunTimeShapes::load(LoadInst& load, IRBuilder<>& builder) {
  auto group = load_groups_.find(&load);
  if (group != load_groups_.end() && load_group(group->second, builder)) return true;
  if (load_likely_pattern(load, builder)) return true;
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
  auto otherwise = [&] {
    return shape->has_windows ? load_in_windows({&load}, *shape, builder, scalarized) : scalarized();
  };
  lanes_.set_vector(&load, emit_by_shape(*shape, builder, in_parts, otherwise)[0]);
  return true;
}

bool RunTimeShapes::store(StoreInst& store, IRBuilder<>& builder) { return store_if_tested(store, false, builder); }

// Without windows if the store was tested for a butterfly.
bool RunTimeShapes::store_if_tested(StoreInst& store, bool has_partner, IRBuilder<>& builder) {
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
  auto otherwise = [&] {
    if (!shape->has_windows || has_partner) return scalarized();
    store_in_windows(store, *shape, builder, scalarized);
    return Values();
  };
  emit_by_shape(*shape, builder, in_parts, otherwise);
  return true;
}

}  // namespace kiln::widening
