#include "compiler/codegen/lane_reductions.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/Sequence.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Support/MathExtras.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "compiler/ir/simdgroup.h"

namespace kiln {

using namespace llvm;

namespace {

std::optional<ReductionOperator> operation_of(const Value* value) {
  ReductionOperator operation;
  if (auto* binary = dyn_cast<BinaryOperator>(value); binary && binary->isCommutative())
    operation.opcode = binary->getOpcode();
  else if (auto* min_max = dyn_cast<MinMaxIntrinsic>(value))
    operation.intrinsic = min_max->getIntrinsicID();
  else
    return std::nullopt;
  if (isa<FPMathOperator>(value)) operation.flags = cast<Instruction>(value)->getFastMathFlags();
  return operation;
}

// The value and the permutation of `sum = value + value ^ distance`, if that holds for all of `lanes`; else null.
std::pair<Value*, User*> added_to_itself(const User& sum, int distance, ArrayRef<int> lanes) {
  for (unsigned side : {0u, 1u}) {
    Value* value = sum.getOperand(side);
    auto* moved = dyn_cast<ShuffleVectorInst>(sum.getOperand(1 - side));
    if (!moved || moved == value || moved->getType() != value->getType() || !moved->hasOneUse()) continue;
    auto is_moved = [&](int lane) {
      std::optional<VectorElement> source = source_of(moved, static_cast<unsigned>(lane));
      return source && source == source_of(value, static_cast<unsigned>(lane ^ distance));
    };
    if (all_of(lanes, is_moved)) return {value, moved};
  }
  return {};
}

Value* combine(Value* a, Value* b, const ReductionOperator& operation, IRBuilderBase& builder) {
  IRBuilderBase::FastMathFlagGuard guard(builder);
  builder.setFastMathFlags(operation.flags);
  if (operation.intrinsic != Intrinsic::not_intrinsic) return builder.CreateBinaryIntrinsic(operation.intrinsic, a, b);
  return builder.CreateBinOp(static_cast<Instruction::BinaryOps>(operation.opcode), a, b);
}

// Adds up numbers in registers over the bits of their lane indices, the lowest first. Bits are given as in LaneLayout;
// those from kLaneBits on are bits of the sum's index.
class LaneReducer {
 public:
  LaneReducer(SmallVector<Value*, 32> registers, LaneLayout layout, const ReductionOperator& operation,
              IRBuilderBase& builder)
      : registers_(std::move(registers)), layout_(std::move(layout)), operation_(operation), builder_(builder) {}

  // For the registers of one sum.
  void reduce_to_one_register() {
    for (unsigned bit = 0; registers_.size() > 1; ++bit) add(bit);
  }

  // Adds over the lane bits that remain.
  void add_all() {
    for (unsigned bit = 0; bit < kLaneBits; ++bit)
      if (is_contained(layout_.elements, bit)) add(bit);
  }

  const SmallVector<Value*, 32>& registers() const { return registers_; }
  const LaneLayout& layout() const { return layout_; }

  Value* sum(unsigned number) {
    auto position_in = [&](ArrayRef<unsigned> bits) {
      unsigned position = 0;
      for (auto [i, bit] : enumerate(bits)) position |= (number >> (bit - kLaneBits) & 1) << i;
      return position;
    };
    Value* value = registers_[position_in(layout_.registers)];
    if (!value->getType()->isVectorTy()) return value;
    return builder_.CreateExtractElement(value, uint64_t{position_in(layout_.elements)});
  }

 private:
  void add(unsigned bit) {
    const auto* position = llvm::find(layout_.elements, bit);
    assert(position != layout_.elements.end() && "numbers lie in squares or in order");
    add_elements(static_cast<unsigned>(position - layout_.elements.begin()));
  }

  // Adds numbers at a distance within registers, and packs two registers into one if there are two. Shuffles within
  // 128-bit parts stay within them, and shuffles of 128-bit parts keep those whole.
  void add_elements(unsigned position) {
    const unsigned part_bits = 2;
    const bool is_within_part = position < part_bits;
    unsigned freed = is_within_part ? std::min<unsigned>(part_bits, layout_.elements.size()) - 1
                                    : static_cast<unsigned>(layout_.elements.size()) - 1;
    const auto width = 1u << layout_.elements.size();
    layout_.elements.erase(layout_.elements.begin() + position);
    const bool has_two = registers_.size() > 1;
    if (has_two) {
      layout_.elements.insert(layout_.elements.begin() + freed, layout_.registers[0]);
      layout_.registers.erase(layout_.registers.begin());
    }
    auto mask = [&](unsigned side) {
      SmallVector<int, 16> elements;
      for (unsigned i = 0; i < (has_two ? width : width / 2); ++i) {
        unsigned from = i, second = 0;
        auto without = [](unsigned number, unsigned bit) {
          return (number >> (bit + 1) << bit) | (number & ((1u << bit) - 1));
        };
        if (has_two) second = i >> freed & 1, from = without(i, freed);
        from = (from >> position << (position + 1)) | side << position | (from & ((1u << position) - 1));
        elements.push_back(static_cast<int>(from + second * width));
      }
      return elements;
    };
    const SmallVector<int, 16> low = mask(0), high = mask(1);
    SmallVector<Value*, 32> sums;
    for (size_t i = 0; i < registers_.size(); i += has_two ? 2 : 1) {
      Value* a = registers_[i];
      if (!a) {
        sums.push_back(nullptr);
      } else if (width == 2 && !has_two) {
        sums.push_back(
            add(builder_.CreateExtractElement(a, uint64_t{0}), builder_.CreateExtractElement(a, uint64_t{1})));
      } else {
        Value* b = has_two && registers_[i + 1] ? registers_[i + 1] : PoisonValue::get(a->getType());
        sums.push_back(add(builder_.CreateShuffleVector(a, b, low), builder_.CreateShuffleVector(a, b, high)));
      }
    }
    registers_ = std::move(sums);
  }

  Value* add(Value* a, Value* b) { return a && b ? combine(a, b, operation_, builder_) : nullptr; }

  SmallVector<Value*, 32> registers_;  // null: padding
  LaneLayout layout_;
  const ReductionOperator& operation_;
  IRBuilderBase& builder_;
};

// Reduces the sums of one block in groups: no sum of a group is used before the last one is computed.
class BlockSums {
 public:
  BlockSums(BasicBlock& block, const VectorIsa& vector_isa) : block_(block), isa_(vector_isa) {}

  void run() {
    for (Instruction& instruction : block_)
      if (auto* element = dyn_cast<ExtractElementInst>(&instruction))
        if (std::optional<LaneSum> sum = lane_sum(*element, isa_)) add(*element, *sum);
    for (auto& group : groups_) add_up_all(group);
  }

 private:
  using Group = SmallVector<std::pair<ExtractElementInst*, LaneSum>>;

  void add(ExtractElementInst& element, const LaneSum& sum) {
    auto fits = [&](const Group& group) {
      return group.size() < kMostReductionsTogether && group[0].second.operation.is_like(sum.operation) &&
             group[0].second.has_transposed_order == sum.has_transposed_order &&
             group[0].first->getType() == element.getType() &&
             all_of(
                 group,
                 [&](const auto& other) {
                   return all_of(other.first->users(), [&](const User* user) {
                     auto* instruction = cast<Instruction>(user);
                     return instruction->getParent() != &block_ || isa<PHINode>(instruction) ||
                            element.comesBefore(instruction);
                   });
                 });
    };
    if (groups_.empty() || !fits(groups_.back())) groups_.emplace_back();
    groups_.back().push_back({&element, sum});
  }

  void add_up_all(Group& group) {
    // For one sum of two registers the butterfly takes as many instructions.
    if (group.size() == 1 && isa_.num_words() == kLanes / 2) return;
    IRBuilder<> builder(group[0].first);
    SmallVector<PartialSum> partial_sums;
    for (auto& [element, sum] : group) {
      builder.SetInsertPoint(element);
      partial_sums.push_back(reduce_to_register(sum, isa_, builder));
    }
    ReductionOperator operation = group[0].second.operation;
    for (const auto& [element, sum] : group) operation.flags &= sum.operation.flags;
    SmallVector<Value*> sums = reduce_together(partial_sums, operation, builder);
    for (auto [sum, pair] : zip(sums, group)) {
      ExtractElementInst* element = pair.first;
      element->replaceAllUsesWith(builder.CreateBitCast(sum, element->getType()));
    }
    for (auto& [element, sum] : group) RecursivelyDeleteTriviallyDeadInstructions(element);
  }

  BasicBlock& block_;
  const VectorIsa& isa_;
  SmallVector<Group> groups_;
};

}  // namespace

std::optional<LaneSum> lane_sum(ExtractElementInst& element, const VectorIsa& vector_isa) {
  auto* index = dyn_cast<ConstantInt>(element.getIndexOperand());
  if (!index || !index->isZero()) return std::nullopt;
  Value* sum = element.getVectorOperand();
  // A store may use the bits.
  if (auto* bits = dyn_cast<BitCastInst>(sum); bits && bits->hasOneUse()) sum = bits->getOperand(0);
  auto* type = dyn_cast<FixedVectorType>(sum->getType());
  if (!type || type->getNumElements() != kLanes || type->getScalarSizeInBits() != 32) return std::nullopt;
  // An element of the bits may be a part of a number.
  if (element.getType()->getScalarSizeInBits() != 32) return std::nullopt;
  std::optional<ReductionOperator> operation = operation_of(sum);
  if (!operation) return std::nullopt;
  LaneSum found{sum, *operation, false};
  SmallVector<int, kLanes> lanes{0};
  // A value with other users is computed anyway.
  SmallVector<const User*, 2> users{sum == element.getVectorOperand() ? cast<User>(&element)
                                                                      : cast<User>(element.getVectorOperand())};
  auto is_known_user = [&](const User* user) { return is_contained(users, user); };
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    if (!all_of(found.lanes->users(), is_known_user)) return std::nullopt;
    std::optional<ReductionOperator> own = operation_of(found.lanes);
    if (!own || !own->is_like(*operation)) return std::nullopt;
    found.operation.flags &= own->flags;
    auto* addition = cast<User>(found.lanes);
    auto [value, moved] = added_to_itself(*addition, distance, lanes);
    if (!value) return std::nullopt;
    found.lanes = value;
    users.assign({addition, moved});
    for (int lane : SmallVector<int, kLanes>(lanes)) lanes.push_back(lane ^ distance);
  }
  found.has_transposed_order = has_transposed_order(found.lanes, vector_isa.num_words(), users);
  return found;
}

PartialSum reduce_to_register(const LaneSum& sum, const VectorIsa& vector_isa, IRBuilderBase& builder) {
  LanesInRegisters lanes = lay_out(sum.lanes, vector_isa.num_words(), sum.has_transposed_order, builder);
  LaneReducer reducer({lanes.registers.begin(), lanes.registers.end()}, lanes.layout, sum.operation, builder);
  reducer.reduce_to_one_register();
  return {reducer.registers()[0], reducer.layout().elements};
}

SmallVector<Value*> reduce_together(ArrayRef<PartialSum> partial_sums, const ReductionOperator& operation,
                                    IRBuilderBase& builder) {
  SmallVector<Value*, 32> registers;
  for (const PartialSum& sum : partial_sums) registers.push_back(sum.numbers);
  LaneLayout layout{partial_sums[0].elements, {}};
  registers.resize(PowerOf2Ceil(registers.size()));
  append_range(layout.registers, seq(kLaneBits, kLaneBits + Log2_64(registers.size())));
  LaneReducer reducer(std::move(registers), std::move(layout), operation, builder);
  reducer.add_all();
  SmallVector<Value*> sums;
  for (unsigned i = 0; i < partial_sums.size(); ++i) sums.push_back(reducer.sum(i));
  return sums;
}

void reduce_lanes(Module& module, const VectorIsa& vector_isa) {
  for (Function& function : module)
    for (BasicBlock& block : function) BlockSums(block, vector_isa).run();
}

}  // namespace kiln
