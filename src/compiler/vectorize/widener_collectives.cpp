#include "compiler/vectorize/widener_collectives.h"

namespace kiln::widening {

// The lanes of a simdgroup run in lockstep, so only barriers remain.
void Collectives::widen_convergence_point(CallInst& call, unsigned point, IRBuilder<>& builder) {
  if (!points_[point].is_barrier) return;
  Value* bits = lanes_.mask_bits(builder);
  SmallVector<Value*> operands(call.operands());
  operands[1] = builder.CreateZExt(bits, builder.getInt64Ty());
  operands[2] = builder.getInt64(0);
  // Active lanes are in the same iteration (barriers_are_uniform); others may have left earlier.
  for (Value*& counter : MutableArrayRef(operands).slice(3, call.arg_size() - 3)) {
    if (!lanes_.is_divergent(counter)) {
      counter = lanes_.scalar(counter);
      continue;
    }
    Value* first = builder.CreateIntrinsic(Intrinsic::cttz, builder.getInt32Ty(), {bits, builder.getFalse()});
    counter = builder.CreateExtractElement(lanes_.vector(counter, builder), builder.CreateAnd(first, kLanes - 1));
  }
  builder.Insert(with_operands(call, operands));
}

void Collectives::widen(CallInst& call, LaneOperation operation, IRBuilder<>& builder) {
  if (operation == LaneOperation::kMultiply) {
    lanes_.set_vector(&call, multiply(call, builder));
    return;
  }
  Value* lanes = lanes_.vector(call.getArgOperand(0), builder);
  auto constant = [&] { return cast<ConstantInt>(call.getArgOperand(1))->getZExtValue(); };
  auto moved = [&](auto source_of) {
    SmallVector<int> sources;
    for (unsigned lane = 0; lane < kLanes; ++lane) sources.push_back(static_cast<int>(source_of(lane)));
    return builder.CreateShuffleVector(lanes, sources);
  };
  switch (operation) {
    case LaneOperation::kNone:
    case LaneOperation::kMultiply: return;
    case LaneOperation::kVote: {
      Value* votes = builder.CreateBitCast(lanes_.narrowed(lanes_.mask(), lanes, builder), builder.getInt32Ty());
      lanes_.set_scalar(&call, votes);
      return;
    }
    case LaneOperation::kTake:
      lanes_.set_vector(&call,
                        builder.CreateSelect(lanes_.mask(), lanes, lanes_.vector(call.getArgOperand(1), builder)));
      return;
    case LaneOperation::kExchange:
      lanes_.set_vector(&call, moved([&](uint64_t lane) { return lane ^ constant(); }));
      return;
    case LaneOperation::kUp:
      lanes_.set_vector(&call, moved([&](uint64_t lane) { return lane < constant() ? lane : lane - constant(); }));
      return;
    case LaneOperation::kFirst: lanes_.set_scalar(&call, builder.CreateExtractElement(lanes, uint64_t{0})); return;
    case LaneOperation::kShuffle: {
      lanes = builder.CreateSelect(lanes_.mask(), lanes, Constant::getNullValue(lanes->getType()));
      if (!lanes_.is_divergent(&call)) {
        lanes_.set_scalar(&call, builder.CreateExtractElement(lanes, constant() % kLanes));
        return;
      }
      Value* last = ConstantInt::get(vector_of(builder.getInt32Ty()), kLanes - 1);
      Value* sources = builder.CreateAnd(lanes_.vector(call.getArgOperand(1), builder), last);
      lanes_.set_vector(&call, permuted(lanes, sources, builder));
      return;
    }
  }
}

Value* Collectives::permuted(Value* lanes, Value* sources, IRBuilder<>& builder) {
  if (auto* constant = dyn_cast<Constant>(sources)) {
    SmallVector<int> mask;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      mask.push_back(static_cast<int>(cast<ConstantInt>(constant->getAggregateElement(lane))->getZExtValue()));
    return builder.CreateShuffleVector(lanes, mask);
  }
  auto* type = cast<FixedVectorType>(lanes->getType());
  Type* words = vector_of(builder.getInt32Ty());
  unsigned bits = type->getScalarSizeInBits();
  if (bits < 32) return builder.CreateTrunc(permuted(builder.CreateZExt(lanes, words), sources, builder), type);
  if (bits == 64) {
    Value* low = permuted(builder.CreateTrunc(lanes, words), sources, builder);
    Value* high = permuted(builder.CreateTrunc(builder.CreateLShr(lanes, 32), words), sources, builder);
    return builder.CreateOr(builder.CreateZExt(low, type), builder.CreateShl(builder.CreateZExt(high, type), 32));
  }
  if (!isa_.permute_two_registers) {
    Value* slot = lanes_.allocate(words);
    builder.CreateStore(lanes, slot);
    Value* addresses = builder.CreateInBoundsGEP(builder.getInt32Ty(), slot, sources);
    return builder.CreateMaskedGather(words, addresses, Align(4),
                                      Constant::getAllOnesValue(vector_of(Type::getInt1Ty(lanes_.context()))));
  }
  auto half = [&](Value* all, unsigned first) {
    SmallVector<int> mask;
    for (unsigned i = 0; i < kLanes / 2; ++i) mask.push_back(static_cast<int>(first + i));
    return builder.CreateShuffleVector(all, mask);
  };
  Value *low = half(lanes, 0), *high = half(lanes, kLanes / 2);
  auto pick = [&](unsigned first) { return isa_.permute_two_registers(low, high, half(sources, first), builder); };
  SmallVector<int> both;
  for (unsigned i = 0; i < kLanes; ++i) both.push_back(static_cast<int>(i));
  return builder.CreateShuffleVector(pick(0), pick(kLanes / 2), both);
}

}  // namespace kiln::widening
