#include "compiler/codegen/compose_shuffles.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace kiln {
namespace {

using namespace llvm;
using namespace PatternMatch;

unsigned count_of(const Value& vector) { return cast<FixedVectorType>(vector.getType())->getNumElements(); }

// Where an element comes from. Without a vector it is poison.
struct Element {
  Value* vector = nullptr;
  unsigned index = 0;
};

// A vector's elements from a known one on, as a shift of an integer of its size has them.
struct Slice {
  Value* vector;
  unsigned first, count;
};

// Whether LLVM makes single elements of a shuffle: the result is shorter than the operands, and what it takes of one of
// them is not within its length from a multiple of it.
bool is_scalarized(const ShuffleVectorInst& shuffle) {
  const auto count = static_cast<int>(count_of(*shuffle.getOperand(0)));
  const auto length = static_cast<int>(shuffle.getShuffleMask().size());
  if (length >= count) return false;
  int blocks[2] = {-1, -1};
  for (int source : shuffle.getShuffleMask()) {
    if (source == PoisonMaskElem) continue;
    int &block = blocks[source / count], of_this = source % count / length;
    if (block != -1 && block != of_this) return true;
    block = of_this;
  }
  return false;
}

class ShuffleComposer {
 public:
  ShuffleComposer(Function& function, const VectorIsa& isa)
      : function_(function), layout_(function.getDataLayout()), isa_(isa) {}

  bool run() {
    SmallVector<WeakTrackingVH> replaced;
    ReversePostOrderTraversal<Function*> order(&function_);
    for (BasicBlock* block : order)
      for (Instruction& instruction : make_early_inc_range(*block)) {
        Value* composed = visit(instruction);
        if (!composed) continue;
        instruction.replaceAllUsesWith(composed);
        replaced.push_back(&instruction);
      }
    // Only now: origins are known by the values.
    const bool has_changed = !replaced.empty();
    RecursivelyDeleteTriviallyDeadInstructionsPermissive(replaced);
    return has_changed;
  }

 private:
  // Where a vector's elements come from that is no source itself.
  struct Origin {
    SmallVector<Element, 0> elements;
    bool is_scalarized;  // some step to it
  };

  // 4 or 8, otherwise 0.
  unsigned bytes_of(const Type* type) const {
    const Type* element = type->getScalarType();
    const unsigned bits = element->isPointerTy() ? 0 : element->getScalarSizeInBits();
    return bits == 32 || bits == 64 ? bits / 8 : 0;
  }

  // A slice is a shift of an integer, or one element of a vector of large integers.
  std::optional<Slice> slice_of(Value& value) const {
    Value *number = &value, *whole = nullptr, *shifted = nullptr, *vector = nullptr;
    (void)match(number, m_BitCast(m_Value(number)));
    const uint64_t bits = uint64_t{8} * bytes_of(value.getType()),
                   num_bits = layout_.getTypeSizeInBits(value.getType());
    uint64_t first = 0;
    const APInt* shift = nullptr;
    if (match(number, m_Trunc(m_Value(whole))) && !whole->getType()->isVectorTy()) {
      if (match(whole, m_LShr(m_Value(shifted), m_APInt(shift)))) {
        whole = shifted;
        first = shift->getLimitedValue();
      }
    } else if (uint64_t index = 0; match(number, m_ExtractElt(m_Value(whole), m_ConstantInt(index)))) {
      first = index * num_bits;
    } else {
      return std::nullopt;
    }
    if (!match(whole, m_BitCast(m_Value(vector))) || !isa<FixedVectorType>(vector->getType()) ||
        8 * bytes_of(vector->getType()) != bits || first % bits != 0 ||
        first + num_bits > layout_.getTypeSizeInBits(vector->getType()))
      return std::nullopt;
    return Slice{vector, static_cast<unsigned>(first / bits), static_cast<unsigned>(num_bits / bits)};
  }

  Element element_of(Value* vector, unsigned index) const {
    if (isa<PoisonValue>(vector)) return {};
    auto origin = origins_.find(vector);
    return origin == origins_.end() ? Element{vector, index} : origin->second.elements[index];
  }

  bool is_from_parts(Value* vector) const {
    auto origin = origins_.find(vector);
    return origin != origins_.end() && origin->second.is_scalarized;
  }

  // What replaces the instruction, or null.
  Value* visit(Instruction& instruction) {
    if (bytes_of(instruction.getType()) == 0) return nullptr;
    Origin origin{{}, false};
    bool must_compose = false;
    if (std::optional<Slice> slice = slice_of(instruction)) {
      for (unsigned i = 0; i < slice->count; ++i)
        origin.elements.push_back(element_of(slice->vector, slice->first + i));
      if (!instruction.getType()->isVectorTy()) return scalar_of(instruction, origin.elements[0]);
      must_compose = true;
    } else if (auto* shuffle = dyn_cast<ShuffleVectorInst>(&instruction)) {
      const unsigned count = count_of(*shuffle->getOperand(0));
      for (int source : shuffle->getShuffleMask()) {
        const auto index = static_cast<unsigned>(source);
        if (source == PoisonMaskElem)
          origin.elements.push_back({});
        else
          origin.elements.push_back(element_of(shuffle->getOperand(index / count), index % count));
      }
      must_compose = is_scalarized(*shuffle);
      origin.is_scalarized = is_from_parts(shuffle->getOperand(0)) || is_from_parts(shuffle->getOperand(1));
    } else if (isa<BitCastInst>(instruction) && origins_.contains(instruction.getOperand(0)) &&
               instruction.getType()->isVectorTy() &&
               bytes_of(instruction.getType()) == bytes_of(instruction.getOperand(0)->getType())) {
      origins_[&instruction] = Origin(origins_[instruction.getOperand(0)]);
      return nullptr;
    } else {
      return nullptr;
    }
    Value* composed = nullptr;
    if (must_compose || origin.is_scalarized) composed = compose(instruction, origin.elements, must_compose);
    origin.is_scalarized |= must_compose;
    if (composed && none_of(origin.elements, [&](const Element& e) { return e.vector == composed; }))
      origins_[composed] = origin;
    origins_[&instruction] = std::move(origin);
    return composed;
  }

  static Value* scalar_of(Instruction& instruction, const Element& element) {
    if (!element.vector) return PoisonValue::get(instruction.getType());
    IRBuilder<> builder(&instruction);
    return builder.CreateBitCast(builder.CreateExtractElement(element.vector, element.index), instruction.getType());
  }

  // Null if a register of the result comes from more than one instruction permutes, unless it must be composed.
  Value* compose(Instruction& instruction, ArrayRef<Element> elements, bool must_compose) {
    auto* type = cast<FixedVectorType>(instruction.getType());
    const unsigned width = isa_.num_elements(bytes_of(type));
    using Register = std::pair<Value*, unsigned>;
    auto register_of = [&](const Element& element) { return Register(element.vector, element.index / width); };
    SmallVector<SmallVector<Register, 4>> sources;
    for (size_t first = 0; first < elements.size(); first += width) {
      sources.emplace_back();
      for (const Element& element : elements.slice(first, std::min<size_t>(width, elements.size() - first)))
        if (element.vector && !is_contained(sources.back(), register_of(element)))
          sources.back().push_back(register_of(element));
      if (!must_compose && sources.back().size() > (isa_.permute_two_registers ? 2 : 1)) return nullptr;
    }
    IRBuilder<> builder(&instruction);
    SmallVector<Value*> parts;
    for (auto [number, registers] : enumerate(sources)) {
      const auto of_part = elements.slice(number * width, std::min<size_t>(width, elements.size() - number * width));
      Value* part = nullptr;
      for (auto [i, source] : enumerate(registers)) {
        Value* taken = builder.CreateBitCast(whole_register(source.first, source.second, width),
                                             FixedVectorType::get(type->getElementType(), width));
        SmallVector<int> mask;
        for (auto [at, element] : enumerate(of_part)) {
          const bool is_from_this = element.vector && register_of(element) == source;
          const auto in_register = static_cast<int>(element.index % width);
          if (!part)
            mask.push_back(is_from_this ? in_register : PoisonMaskElem);
          else if (is_from_this)
            mask.push_back(static_cast<int>(width) + in_register);
          else
            mask.push_back(static_cast<int>(at));
        }
        // The first of several stays a whole register, to be an operand.
        if (!part && registers.size() > 1) mask.resize(width, PoisonMaskElem);
        if (!part)
          part = is_identity(mask, width) ? taken : builder.CreateShuffleVector(taken, mask);
        else
          part = joined(part, taken, std::move(mask), i + 1 < registers.size() ? width : 0, builder);
      }
      parts.push_back(part ? part : PoisonValue::get(FixedVectorType::get(type->getElementType(), of_part.size())));
    }
    return concatenateVectors(builder, parts);
  }

  static bool is_identity(ArrayRef<int> mask, unsigned width) {
    return mask.size() == width && !is_contained(mask, PoisonMaskElem) &&
           ShuffleVectorInst::isIdentityMask(mask, static_cast<int>(width));
  }

  // One shuffle of two registers: a first step that permutes the first one is part of it.
  static Value* joined(Value* part, Value* taken, SmallVector<int> mask, unsigned length, IRBuilder<>& builder) {
    if (length != 0) mask.resize(length, PoisonMaskElem);
    auto* step = dyn_cast<ShuffleVectorInst>(part);
    if (step && step->use_empty() && isa<PoisonValue>(step->getOperand(1)) &&
        step->getOperand(0)->getType() == taken->getType()) {
      const auto width = static_cast<int>(count_of(*taken));
      for (int& source : mask)
        if (source != PoisonMaskElem && source < width) source = step->getMaskValue(static_cast<unsigned>(source));
      part = step->getOperand(0);
      step->eraseFromParent();
    }
    return builder.CreateShuffleVector(part, taken, mask);
  }

  // As the vector's own elements; emitted once, at its definition.
  Value* whole_register(Value* vector, unsigned number, unsigned width) {
    const unsigned count = count_of(*vector);
    if (count == width) return vector;
    Value*& made = registers_[{vector, number}];
    if (made) return made;
    auto* definition = dyn_cast<Instruction>(vector);
    IRBuilder<> builder(function_.getContext());
    if (!definition)
      builder.SetInsertPoint(&function_.getEntryBlock(), function_.getEntryBlock().getFirstInsertionPt());
    else
      builder.SetInsertPoint(*definition->getInsertionPointAfterDef());
    SmallVector<int> mask;
    for (unsigned i = number * width; i < (number + 1) * width; ++i)
      mask.push_back(i < count ? static_cast<int>(i) : PoisonMaskElem);
    return made = builder.CreateShuffleVector(vector, mask);
  }

  Function& function_;
  const DataLayout& layout_;
  const VectorIsa& isa_;
  DenseMap<Value*, Origin> origins_;
  DenseMap<std::pair<Value*, unsigned>, Value*> registers_;
};

}  // namespace

bool compose_shuffles(Function& function, const VectorIsa& isa) { return ShuffleComposer(function, isa).run(); }

}  // namespace kiln
