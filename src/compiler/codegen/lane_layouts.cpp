#include "compiler/codegen/lane_layouts.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/Sequence.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Support/MathExtras.h>

#include <array>
#include <optional>
#include <utility>

#include "compiler/ir/simdgroup.h"

namespace kiln {

using namespace llvm;

namespace {

static_assert(1u << kLaneBits == kLanes);

// Side of a transpose: the numbers in 128 bits, within which shuffles transpose, and the elements of one lane.
constexpr unsigned kSide = 4;

// The most lane-wise instructions that are cloned.
constexpr size_t kMostTransposedInstructions = 64;

unsigned count_of(const Value* vector) { return cast<FixedVectorType>(vector->getType())->getNumElements(); }

// Registers as they were loaded, in which each lane has four consecutive elements.
struct Transposes {
  SmallVector<VectorElement, kSide * kLanes / 8> registers;  // each given by its first element
  unsigned element_index;                                    // index among a lane's elements
};

std::optional<Transposes> transposes_of(Value* lanes, unsigned width) {
  if (!isa<ShuffleVectorInst>(lanes)) return std::nullopt;
  std::optional<VectorElement> first = source_of(lanes, 0);
  if (!first || first->index % width >= kSide) return std::nullopt;
  Transposes transposes{{}, first->index % width};
  for (unsigned lane = 0; lane < count_of(lanes); ++lane) {
    std::optional<VectorElement> source = source_of(lanes, lane);
    const unsigned position = lane * kSide + transposes.element_index;
    if (!source || source->index % width != position % width) return std::nullopt;
    source->index -= position % width;
    if (position / width == transposes.registers.size()) transposes.registers.push_back(*source);
    if (*source != transposes.registers[position / width]) return std::nullopt;
  }
  return transposes;
}

// Whether the value concatenates two vectors.
bool is_concatenation(const Value* value) {
  auto* shuffle = dyn_cast<ShuffleVectorInst>(value);
  return shuffle && shuffle->isConcat();
}

// Whether each lane's result depends on that lane of the operands alone, all of which have the same number of lanes.
bool is_lane_by_lane(const Instruction& instruction) {
  if (isa<BinaryOperator, UnaryOperator, CmpInst, FreezeInst>(instruction)) return true;
  if (isa<CastInst>(instruction)) return count_of(instruction.getOperand(0)) == count_of(&instruction);
  if (auto* select = dyn_cast<SelectInst>(&instruction)) return select->getCondition()->getType()->isVectorTy();
  auto* call = dyn_cast<IntrinsicInst>(&instruction);
  return call && isTriviallyVectorizable(call->getIntrinsicID()) &&
         all_of(call->args(), [&](const Use& argument) { return argument->getType() == call->getType(); });
}

class TransposeOrder {
 public:
  explicit TransposeOrder(unsigned width) : width_(width) {}

  bool is_profitable(Value* lanes, ArrayRef<const User*> users) {
    if (!analyze(lanes) || transposes_.empty()) return false;
    // Otherwise the code would compute both orders.
    return all_of(found_, [&](const Instruction* instruction) {
      return all_of(instruction->users(), [&](const User* user) {
        return is_contained(users, user) || found_.contains(cast<Instruction>(user));
      });
    });
  }

  // Walks the operands as far as they can be computed in another lane order.
  bool analyze(Value* lanes) {
    if (auto* type = dyn_cast<FixedVectorType>(lanes->getType()); !type || type->getNumElements() % width_ != 0)
      return false;
    auto* instruction = dyn_cast<Instruction>(lanes);
    if (getSplatValue(lanes) || (instruction && found_.contains(instruction))) return true;
    if (!instruction || found_.size() == kMostTransposedInstructions) return false;
    found_.insert(instruction);
    if (lanes->getType()->getScalarSizeInBits() == 32)
      if (std::optional<Transposes> transposes = transposes_of(lanes, width_)) {
        transposes_.insert({lanes, std::move(*transposes)});
        return true;
      }
    if (!is_lane_by_lane(*instruction) && !is_concatenation(instruction)) return false;
    return all_of(operands_of(*instruction), [&](const Use& operand) { return analyze(operand); });
  }

  SmallVector<Value*, 8> registers_of(Value* lanes, IRBuilderBase& builder) {
    SmallVector<Value*, 8>& made = made_[lanes];
    if (!made.empty()) return made;
    SmallVector<Value*, 8> registers;
    if (auto transposes = transposes_.find(lanes); transposes != transposes_.end()) {
      registers = transpose(transposes->second, builder);
    } else if (Value* splat = getSplatValue(lanes)) {
      registers.assign(count_of(lanes) / width_, builder.CreateVectorSplat(width_, splat));
    } else if (is_concatenation(lanes)) {
      for (Value* part : cast<Instruction>(lanes)->operands()) append_range(registers, registers_of(part, builder));
    } else {
      auto* instruction = cast<Instruction>(lanes);
      SmallVector<SmallVector<Value*, 8>> operands;
      for (Value* operand : operands_of(*instruction)) operands.push_back(registers_of(operand, builder));
      for (unsigned i = 0; i < count_of(lanes) / width_; ++i)
        registers.push_back(
            compute(*instruction, to_vector(map_range(operands, [&](auto& operand) { return operand[i]; })), builder));
    }
    return made_[lanes] = registers;
  }

 private:
  static iterator_range<User::op_iterator> operands_of(Instruction& instruction) {
    if (auto* call = dyn_cast<CallBase>(&instruction)) return call->args();
    return instruction.operands();
  }

  // Makes one register of each four: element q of its 128-bit part p is the one of part p of register q.
  SmallVector<Value*, 8> transpose(const Transposes& transposes, IRBuilderBase& builder) {
    auto register_at = [&](unsigned i) -> Value* {
      const VectorElement& first = transposes.registers[i];
      if (count_of(first.vector) == width_) return first.vector;
      return builder.CreateShuffleVector(first.vector, createSequentialMask(first.index, width_, 0));
    };
    // Takes `together` numbers (one or two) alternately from each part of two registers, beginning with number `from`.
    auto interleave = [&](Value* a, Value* b, unsigned from, unsigned together) {
      SmallVector<int, 16> mask;
      for (unsigned part = 0; part < width_; part += kSide)
        for (unsigned i = 0; i < kSide; i += 2 * together)
          for (Value* operand : {a, b})
            for (unsigned j = 0; j < together; ++j)
              mask.push_back(static_cast<int>(part + from + i / 2 + j + (operand == b ? width_ : 0)));
      return builder.CreateShuffleVector(a, b, mask);
    };
    const unsigned half = transposes.element_index / 2 * 2;
    SmallVector<Value*, 8> registers;
    for (unsigned i = 0; i < transposes.registers.size(); i += kSide) {
      auto pair = [&](unsigned first) {
        const VectorElement &a = transposes.registers[i + first], &b = transposes.registers[i + first + 1];
        Value*& made = pairs_[{{a.vector, a.index}, {b.vector, b.index}}].at(half / 2);
        if (!made) made = interleave(register_at(i + first), register_at(i + first + 1), half, 1);
        return made;
      };
      Value *low = pair(0), *high = pair(2);
      registers.push_back(interleave(low, high, transposes.element_index % 2 * 2, 2));
    }
    return registers;
  }

  Value* compute(Instruction& instruction, ArrayRef<Value*> operands, IRBuilderBase& builder) {
    Type* type = VectorType::get(instruction.getType()->getScalarType(), width_, false);
    if (auto* call = dyn_cast<IntrinsicInst>(&instruction)) {
      CallInst* made = builder.CreateIntrinsic(type, call->getIntrinsicID(), operands);
      made->copyIRFlags(call);
      return made;
    }
    Instruction* made = instruction.clone();
    for (auto [use, operand] : zip(made->operands(), operands)) use.set(operand);
    made->mutateType(type);
    return builder.Insert(made);
  }

  const unsigned width_;
  SmallPtrSet<const Instruction*, 16> found_;
  DenseMap<Value*, Transposes> transposes_;
  DenseMap<Value*, SmallVector<Value*, 8>> made_;
  using Register = std::pair<Value*, unsigned>;  // a VectorElement
  DenseMap<std::pair<Register, Register>, std::array<Value*, 2>> pairs_;
};

}  // namespace

std::optional<VectorElement> source_of(Value* vector, unsigned index) {
  while (auto* shuffle = dyn_cast<ShuffleVectorInst>(vector)) {
    int from = shuffle->getMaskValue(index);
    if (from < 0) return std::nullopt;
    unsigned count = count_of(shuffle->getOperand(0));
    index = static_cast<unsigned>(from) % count;
    vector = shuffle->getOperand(static_cast<unsigned>(from) / count);
  }
  return VectorElement{vector, index};
}

bool has_transposed_order(Value* lanes, unsigned width, ArrayRef<const User*> users) {
  return width == kLanes / 2 && TransposeOrder(width).is_profitable(lanes, users);
}

LanesInRegisters lay_out(Value* lanes, unsigned width, bool in_transposes, IRBuilderBase& builder) {
  LanesInRegisters result;
  const unsigned bits = Log2_32(width), side_bits = Log2_32(kSide);
  SmallVector<unsigned, 4>& elements = result.layout.elements;
  if (in_transposes) {
    TransposeOrder order(width);
    order.analyze(lanes);
    result.registers = order.registers_of(lanes, builder);
    const unsigned part_bits = bits - side_bits;
    append_range(elements, seq(part_bits, bits));
    append_range(elements, seq(0u, part_bits));
  } else {
    for (unsigned first = 0; first < kLanes; first += width)
      result.registers.push_back(builder.CreateShuffleVector(lanes, createSequentialMask(first, width, 0)));
    append_range(elements, seq(0u, bits));
  }
  append_range(result.layout.registers, seq(bits, kLaneBits));
  return result;
}

}  // namespace kiln
