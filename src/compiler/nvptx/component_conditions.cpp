#include "compiler/nvptx/component_conditions.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/InstSimplifyFolder.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/Local.h>

#include <utility>

namespace kiln {
namespace {

using namespace llvm;

constexpr unsigned kMostBits = 8;         // of an element: a boolean in memory
constexpr unsigned kMostOperations = 64;  // of operations on vectors

class Splitter {
 public:
  explicit Splitter(const DataLayout& layout) : layout_(layout) {}

  bool split(ExtractElementInst& read) {
    auto* number = dyn_cast<ConstantInt>(read.getIndexOperand());
    if (!number || !read.getType()->isIntegerTy() || read.getType()->getIntegerBitWidth() > kMostBits) return false;
    Value* vector = read.getVectorOperand();
    auto* type = dyn_cast<FixedVectorType>(vector->getType());
    if (!type || number->getValue().uge(type->getNumElements())) return false;
    auto index = static_cast<unsigned>(number->getZExtValue());
    // The lowest bit of a byte.
    Value* bytes = nullptr;
    if (auto* bits = dyn_cast<BitCastInst>(vector); bits && read.getType()->isIntegerTy(1)) {
      auto* source = dyn_cast<FixedVectorType>(bits->getSrcTy());
      if (source && source->getElementType()->isIntegerTy(kMostBits) && index % kMostBits == 0) {
        bytes = bits->getOperand(0);
        index /= kMostBits;
      }
    }
    if (!is_computed(bytes ? bytes : vector)) return false;
    Value* value = component(bytes ? bytes : vector, index);
    if (bytes) {
      IRBuilder<InstSimplifyFolder> builder(read.getParent(), read.getIterator(), InstSimplifyFolder(layout_));
      value = builder.CreateTrunc(value, read.getType());
    }
    read.replaceAllUsesWith(value);
    dead_.push_back(&read);
    return true;
  }

  void erase_dead() { RecursivelyDeleteTriviallyDeadInstructionsPermissive(dead_); }

 private:
  // Whether components of the vector can be had without it. (A frozen vector may have other users, for which a
  // component that is frozen by itself may differ.)
  static bool is_computed(const Value* vector) {
    if (const auto* insertion = dyn_cast<InsertElementInst>(vector)) return isa<ConstantInt>(insertion->getOperand(2));
    return isa<Constant, ZExtInst, SExtInst, TruncInst, CmpInst, SelectInst, ShuffleVectorInst>(vector) ||
           (isa<BinaryOperator>(vector) && vector->getType()->isIntOrIntVectorTy());
  }

  Value* component(Value* vector, unsigned index, unsigned depth = 0) {
    if (auto* constant = dyn_cast<Constant>(vector))
      if (Constant* element = constant->getAggregateElement(index)) return element;
    if (auto* insertion = dyn_cast<InsertElementInst>(vector))
      if (auto* place = dyn_cast<ConstantInt>(insertion->getOperand(2)))
        return place->getValue() == index ? insertion->getOperand(1)
                                          : component(insertion->getOperand(0), index, depth);
    if (Value* known = components_.lookup({vector, index})) return known;
    Value* made = compute(vector, index, depth + 1);
    components_[{vector, index}] = made;
    return made;
  }

  Value* compute(Value* vector, unsigned index, unsigned depth) {
    auto* instruction = dyn_cast<Instruction>(vector);
    IRBuilder<InstSimplifyFolder> builder(vector->getContext(), InstSimplifyFolder(layout_));
    if (!instruction || !is_computed(vector) || depth > kMostOperations) {
      place_after(builder, vector);
      return builder.CreateExtractElement(vector, index);
    }
    builder.SetInsertPoint(instruction);
    if (auto* shuffle = dyn_cast<ShuffleVectorInst>(instruction)) {
      const int from = shuffle->getMaskValue(index);
      Type* element = cast<VectorType>(vector->getType())->getElementType();
      if (from < 0) return PoisonValue::get(element);
      const auto count = cast<FixedVectorType>(shuffle->getOperand(0)->getType())->getNumElements();
      const auto place = static_cast<unsigned>(from);
      return place < count ? component(shuffle->getOperand(0), place, depth)
                           : component(shuffle->getOperand(1), place - count, depth);
    }
    SmallVector<Value*, 3> operands;
    for (Value* operand : instruction->operands())
      operands.push_back(operand->getType()->isVectorTy() ? component(operand, index, depth) : operand);
    builder.SetInsertPoint(instruction);
    if (auto* comparison = dyn_cast<CmpInst>(instruction)) {
      if (isa<FCmpInst>(comparison)) builder.setFastMathFlags(comparison->getFastMathFlags());
      return builder.CreateCmp(comparison->getPredicate(), operands[0], operands[1]);
    }
    if (isa<SelectInst>(instruction)) return builder.CreateSelect(operands[0], operands[1], operands[2]);
    if (auto* cast = dyn_cast<CastInst>(instruction))
      return builder.CreateCast(cast->getOpcode(), operands[0], cast->getDestTy()->getScalarType());
    auto* operation = cast<BinaryOperator>(instruction);
    return builder.CreateBinOp(operation->getOpcode(), operands[0], operands[1]);
  }

  // Where the value is there: behind its definition.
  static void place_after(IRBuilder<InstSimplifyFolder>& builder, Value* value) {
    if (auto* argument = dyn_cast<Argument>(value))
      builder.SetInsertPoint(&*argument->getParent()->getEntryBlock().getFirstInsertionPt());
    else if (auto* instruction = dyn_cast<Instruction>(value))
      builder.SetInsertPoint(*instruction->getInsertionPointAfterDef());
  }

  const DataLayout& layout_;
  DenseMap<std::pair<Value*, unsigned>, Value*> components_;
  SmallVector<WeakTrackingVH> dead_;
};

}  // namespace

bool split_vector_conditions(Function& function) {
  Splitter splitter(function.getDataLayout());
  bool has_changed = false;
  for (Instruction& instruction : make_early_inc_range(instructions(function)))
    if (auto* read = dyn_cast<ExtractElementInst>(&instruction)) has_changed |= splitter.split(*read);
  splitter.erase_dead();
  return has_changed;
}

}  // namespace kiln
