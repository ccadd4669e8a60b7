#include "compiler/passes/lane_sums.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/Sequence.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/Local.h>

#include <array>

#include "compiler/passes/widen.h"

namespace kiln {

using namespace llvm;

namespace {

constexpr int kRegister = 8;  // floats
constexpr int kSimdgroup = kLanes;

// Of `sum = value + value ^ distance` the value, where that holds for the lanes that are wanted; else null.
Value* added_to_itself(Value* sum, int distance, ArrayRef<int> lanes) {
  auto* addition = dyn_cast<BinaryOperator>(sum);
  if (!addition || addition->getOpcode() != Instruction::FAdd) return nullptr;
  for (unsigned side : {0u, 1u}) {
    Value* value = addition->getOperand(side);
    auto* moved = dyn_cast<ShuffleVectorInst>(addition->getOperand(1 - side));
    if (!moved || moved->getOperand(0) != value) continue;
    if (all_of(lanes, [&](int lane) { return moved->getMaskValue(static_cast<unsigned>(lane)) == (lane ^ distance); }))
      return value;
  }
  return nullptr;
}

// What has been added up in lane 0, or null; and the additions' flags.
Value* added_up(Value* sum, FastMathFlags& flags) {
  SmallVector<int, kSimdgroup> lanes{0};
  for (int distance = kSimdgroup / 2; distance > 0; distance /= 2) {
    // What others want too is computed anyway.
    const unsigned users = distance == kSimdgroup / 2 ? 1 : 2;
    Value* value = sum->hasNUses(users) ? added_to_itself(sum, distance, lanes) : nullptr;
    if (!value) return nullptr;
    flags &= cast<Instruction>(sum)->getFastMathFlags();
    for (int lane : SmallVector<int, kSimdgroup>(lanes)) lanes.push_back(lane ^ distance);
    sum = value;
  }
  return sum;
}

Value* sum_of(Value* lanes, IRBuilder<>& builder) {
  auto part = [&](Value* value, int first, int count) {
    return builder.CreateShuffleVector(value, to_vector(seq(first, first + count)));
  };
  // What lies in each half of a register beside one another, of both registers.
  auto add_neighbours = [&](Value* a, Value* b) {
    Value* even = builder.CreateShuffleVector(a, b, std::array{0, 2, 8, 10, 4, 6, 12, 14});
    Value* odd = builder.CreateShuffleVector(a, b, std::array{1, 3, 9, 11, 5, 7, 13, 15});
    return builder.CreateFAdd(even, odd);
  };
  auto pairs = [&](int first) {
    return add_neighbours(part(lanes, first, kRegister), part(lanes, first + kRegister, kRegister));
  };
  Value* fours = add_neighbours(pairs(0), pairs(2 * kRegister));
  Value* eights = builder.CreateFAdd(part(fours, 0, 4), part(fours, 4, 4));
  Value* sixteens = builder.CreateFAdd(builder.CreateShuffleVector(eights, std::array{0, 2, 0, 2}),
                                       builder.CreateShuffleVector(eights, std::array{1, 3, 1, 3}));
  return builder.CreateFAdd(builder.CreateExtractElement(sixteens, uint64_t{0}),
                            builder.CreateExtractElement(sixteens, uint64_t{1}));
}

}  // namespace

void add_lanes_by_pairs(Module& module) {
  SmallVector<ExtractElementInst*> first_ones;
  for (Function& function : module)
    for (Instruction& instruction : instructions(function)) {
      auto* element = dyn_cast<ExtractElementInst>(&instruction);
      auto* index = element ? dyn_cast<ConstantInt>(element->getIndexOperand()) : nullptr;
      auto* type = element ? dyn_cast<FixedVectorType>(element->getVectorOperandType()) : nullptr;
      if (index && index->isZero() && type->getNumElements() == kSimdgroup) first_ones.push_back(element);
    }
  for (ExtractElementInst* element : first_ones) {
    Value* sum = element->getVectorOperand();
    // As the bits that are stored.
    if (auto* bits = dyn_cast<BitCastInst>(sum); bits && bits->hasOneUse()) sum = bits->getOperand(0);
    auto* type = dyn_cast<FixedVectorType>(sum->getType());
    if (!type || !type->getElementType()->isFloatTy() || type->getNumElements() != kSimdgroup) continue;
    FastMathFlags flags = FastMathFlags::getFast();
    Value* lanes = added_up(sum, flags);
    if (!lanes) continue;
    IRBuilder<> builder(element);
    builder.setFastMathFlags(flags);
    element->replaceAllUsesWith(builder.CreateBitCast(sum_of(lanes, builder), element->getType()));
    RecursivelyDeleteTriviallyDeadInstructions(element);
  }
}

}  // namespace kiln
