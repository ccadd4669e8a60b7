#include "compiler/codegen/split_vectors.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/InstructionSimplify.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/Local.h>

namespace kiln {
namespace {

using namespace llvm;

using Parts = SmallVector<Value*, 4>;

class VectorSplitter {
 public:
  VectorSplitter(BasicBlock& block, unsigned lanes)
      : block_(block), lanes_(lanes), has_phis_(!block.phis().empty()), builder_(block.getContext()) {}

  void run() {
    SmallVector<Instruction*> old;
    for (PHINode& phi : make_early_inc_range(block_.phis()))
      if (count_of(phi.getType()) > 1) old.push_back(&phi), split_phi(phi);
    for (Instruction& instruction : make_early_inc_range(block_)) {
      builder_.SetInsertPoint(&instruction);
      builder_.SetCurrentDebugLocation(instruction.getDebugLoc());
      if (isa<PHINode>(instruction) || !split(instruction)) continue;
      old.push_back(&instruction);
    }
    for (Instruction* instruction : old)
      if (auto* phi = dyn_cast<PHINode>(instruction)) complete(*phi);
    // Instructions that are not split use the whole vector.
    for (Instruction* instruction : reverse(old)) {
      if (!instruction->use_empty()) {
        if (isa<PHINode>(instruction))
          builder_.SetInsertPoint(&block_, block_.getFirstInsertionPt());
        else
          builder_.SetInsertPoint(instruction);
        instruction->replaceAllUsesWith(concatenateVectors(builder_, parts_[instruction]));
      }
      instruction->eraseFromParent();
    }
    for (Instruction& instruction : make_early_inc_range(reverse(block_)))
      if (isInstructionTriviallyDead(&instruction)) instruction.eraseFromParent();
  }

 private:
  // The number of registers; 1 where the type is not split.
  unsigned count_of(Type* type) const {
    auto* vector = dyn_cast<FixedVectorType>(type);
    if (!vector || vector->getNumElements() % lanes_ != 0) return 1;
    Type* element = vector->getElementType();
    if (!element->isIntegerTy(1) && !element->isIntegerTy(32) && !element->isFloatTy()) return 1;
    return vector->getNumElements() / lanes_;
  }

  Type* part_of(Type* type) const { return FixedVectorType::get(type->getScalarType(), lanes_); }

  const Parts& parts_of(Value* value) {
    Parts& parts = parts_[value];
    if (!parts.empty()) return parts;
    unsigned count = count_of(value->getType());
    auto* constant = dyn_cast<Constant>(value);
    IRBuilderBase::InsertPointGuard guard(builder_);
    auto* instruction = dyn_cast<Instruction>(value);
    bool is_here = instruction && instruction->getParent() == &block_;
    if (is_here && isa<PHINode>(instruction))
      builder_.SetInsertPoint(&block_, block_.getFirstInsertionPt());
    else if (is_here)
      builder_.SetInsertPoint(instruction->getNextNode());
    Value* splat = constant ? nullptr : getSplatValue(value);
    for (unsigned part = 0; part < count; ++part) {
      if (splat && part > 0) {
        parts.push_back(parts[0]);
      } else if (splat && is_here) {
        parts.push_back(builder_.CreateVectorSplat(lanes_, splat));
      } else if (constant) {
        SmallVector<Constant*> elements;
        for (unsigned lane = 0; lane < lanes_; ++lane)
          elements.push_back(constant->getAggregateElement(part * lanes_ + lane));
        parts.push_back(ConstantVector::get(elements));
      } else {
        parts.push_back(builder_.CreateShuffleVector(value, createSequentialMask(part * lanes_, lanes_, 0)));
      }
    }
    return parts;
  }

  void split_phi(PHINode& phi) {
    builder_.SetInsertPoint(&phi);
    Parts parts;
    for (unsigned part = 0; part < count_of(phi.getType()); ++part)
      parts.push_back(builder_.CreatePHI(part_of(phi.getType()), phi.getNumIncomingValues(), phi.getName()));
    keep(phi, std::move(parts));
  }

  // The parts have the predecessors of the whole.
  void complete(PHINode& phi) {
    DenseMap<BasicBlock*, Parts> incoming;
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
      Value* value = phi.getIncomingValue(i);
      BasicBlock* from = phi.getIncomingBlock(i);
      Parts& values = incoming[from];
      if (values.empty() && (from == &block_ || isa<Constant>(value))) {
        builder_.SetInsertPoint(block_.getTerminator());
        values = parts_of(value);
      } else if (values.empty()) {
        builder_.SetInsertPoint(from->getTerminator());
        for (unsigned part = 0; part < parts_[&phi].size(); ++part)
          values.push_back(builder_.CreateShuffleVector(value, createSequentialMask(part * lanes_, lanes_, 0)));
      }
      for (auto [part, one] : enumerate(parts_[&phi])) cast<PHINode>(one)->addIncoming(values[part], from);
    }
  }

  bool split(Instruction& instruction) {
    if (auto* store = dyn_cast<StoreInst>(&instruction)) return split_store(*store);
    if (auto* extract = dyn_cast<ExtractElementInst>(&instruction)) return split_extract(*extract);
    if (auto* shuffle = dyn_cast<ShuffleVectorInst>(&instruction)) return split_shuffle(*shuffle);
    unsigned count = count_of(instruction.getType());
    if (count == 1) return false;
    if (auto* load = dyn_cast<LoadInst>(&instruction)) return split_load(*load, count);
    if (auto* insert = dyn_cast<InsertElementInst>(&instruction)) return split_insert(*insert);
    auto* call = dyn_cast<IntrinsicInst>(&instruction);
    if (call && (!isTriviallyVectorizable(call->getIntrinsicID()) ||
                 any_of(call->args(), [&](const Use& use) { return count_of(use->getType()) != count; })))
      return false;
    if (!call && !isa<BinaryOperator, UnaryOperator, CmpInst, SelectInst, FreezeInst, CastInst>(instruction))
      return false;
    // A cast of a scalar to a vector is not split.
    if (isa<CastInst>(instruction) && !instruction.getOperand(0)->getType()->isVectorTy()) return false;
    for (const Use& use : instruction.operands())
      if (use->getType()->isVectorTy() && count_of(use->getType()) != count) return false;
    Parts parts;
    SmallVector<Parts> operands;
    unsigned operand_count = call ? call->arg_size() : instruction.getNumOperands();
    for (unsigned i = 0; i < operand_count; ++i)
      operands.push_back(instruction.getOperand(i)->getType()->isVectorTy() ? parts_of(instruction.getOperand(i))
                                                                            : Parts(count, instruction.getOperand(i)));
    for (unsigned part = 0; part < count; ++part) {
      Instruction* one = nullptr;
      if (call) {
        SmallVector<Type*> types;
        SmallVector<Value*> arguments;
        Intrinsic::ID id = call->getIntrinsicID();
        if (isVectorIntrinsicWithOverloadTypeAtArg(id, -1)) types.push_back(part_of(call->getType()));
        for (unsigned i = 0; i < operand_count; ++i) {
          arguments.push_back(operands[i][part]);
          if (isVectorIntrinsicWithOverloadTypeAtArg(id, static_cast<int>(i))) types.push_back(arguments[i]->getType());
        }
        one = builder_.CreateIntrinsic(id, types, arguments);
        one->copyIRFlags(call);
      } else {
        one = instruction.clone();
        for (unsigned i = 0; i < operand_count; ++i) one->setOperand(i, operands[i][part]);
        one->mutateType(part_of(instruction.getType()));
        builder_.Insert(one);
      }
      // A constant may be a splat in this register alone. Phis have no incoming values yet, so any result would be
      // possible.
      Value* simple = has_phis_ ? nullptr : simplifyInstruction(one, block_.getDataLayout());
      if (simple) one->eraseFromParent();
      parts.push_back(simple ? simple : one);
    }
    return keep(instruction, std::move(parts));
  }

  bool keep(Instruction& instruction, Parts parts) {
    parts_[&instruction] = std::move(parts);
    return true;
  }

  Value* address_of(Value* pointer, unsigned part) {
    return part == 0 ? pointer : builder_.CreateConstGEP1_32(builder_.getInt8Ty(), pointer, part * lanes_ * 4);
  }

  static bool is_mask(Type* type) { return type->getScalarType()->isIntegerTy(1); }

  bool split_load(LoadInst& load, unsigned count) {
    if (!load.isSimple() || is_mask(load.getType())) return false;
    Parts parts;
    for (unsigned part = 0; part < count; ++part) {
      LoadInst* one = builder_.CreateAlignedLoad(part_of(load.getType()), address_of(load.getPointerOperand(), part),
                                                 commonAlignment(load.getAlign(), part * lanes_ * 4));
      one->copyMetadata(load);
      parts.push_back(one);
    }
    return keep(load, std::move(parts));
  }

  bool split_store(StoreInst& store) {
    Value* value = store.getValueOperand();
    if (!store.isSimple() || count_of(value->getType()) == 1 || is_mask(value->getType())) return false;
    for (auto [part, one] : enumerate(Parts(parts_of(value))))
      builder_
          .CreateAlignedStore(one, address_of(store.getPointerOperand(), static_cast<unsigned>(part)),
                              commonAlignment(store.getAlign(), part * lanes_ * 4))
          ->copyMetadata(store);
    return true;
  }

  bool split_insert(InsertElementInst& insert) {
    auto* index = dyn_cast<ConstantInt>(insert.getOperand(2));
    // The insertelement of a splat.
    if (!index || isa<UndefValue>(insert.getOperand(0))) return false;
    uint64_t lane = index->getZExtValue();
    if (lane >= cast<FixedVectorType>(insert.getType())->getNumElements()) return false;
    Parts parts = parts_of(insert.getOperand(0));
    Value*& part = parts[lane / lanes_];
    part = builder_.CreateInsertElement(part, insert.getOperand(1), lane % lanes_);
    return keep(insert, std::move(parts));
  }

  bool split_extract(ExtractElementInst& extract) {
    Value* vector = extract.getVectorOperand();
    auto* index = dyn_cast<ConstantInt>(extract.getIndexOperand());
    if (!index || count_of(vector->getType()) == 1) return false;
    uint64_t lane = index->getZExtValue();
    if (lane >= cast<FixedVectorType>(vector->getType())->getNumElements()) return false;
    extract.replaceAllUsesWith(builder_.CreateExtractElement(parts_of(vector)[lane / lanes_], lane % lanes_));
    return true;
  }

  // Shuffles each register of the result from those that hold its elements, two at a time.
  bool split_shuffle(ShuffleVectorInst& shuffle) {
    unsigned wide = cast<FixedVectorType>(shuffle.getOperand(0)->getType())->getNumElements();
    unsigned count = count_of(shuffle.getType()), operand_count = count_of(shuffle.getOperand(0)->getType());
    unsigned result_lanes = static_cast<unsigned>(shuffle.getShuffleMask().size());
    if ((count == 1 && operand_count == 1) || (count > 1 && getSplatValue(&shuffle))) return false;
    unsigned part_lanes = count == 1 ? result_lanes : lanes_, operand_lanes = wide / operand_count;
    // A result that is no register, shuffled from registers, must have the element type of a register.
    Type* element = shuffle.getType()->getScalarType();
    if (!element->isIntegerTy(1) && !element->isIntegerTy(32) && !element->isFloatTy()) return false;
    SmallVector<Value*, 8> sources;
    for (Value* operand : {shuffle.getOperand(0), shuffle.getOperand(1)}) {
      if (operand_count == 1)
        sources.push_back(operand);
      else
        append_range(sources, parts_of(operand));
    }
    Parts parts;
    for (unsigned part = 0; part < count; ++part)
      parts.push_back(
          shuffle_from(sources, operand_lanes, shuffle.getShuffleMask().slice(part * part_lanes, part_lanes)));
    if (count == 1) {
      shuffle.replaceAllUsesWith(parts[0]);
      return true;
    }
    return keep(shuffle, std::move(parts));
  }

  Value* shuffle_from(ArrayRef<Value*> sources, unsigned source_lanes, ArrayRef<int> lanes) {
    Value* result = nullptr;
    SmallVector<int> from(lanes.begin(), lanes.end());
    for (size_t first = 0; first < sources.size(); ++first) {
      auto is_in = [&](int lane, size_t source) {
        return lane >= 0 && static_cast<size_t>(lane) / source_lanes == source;
      };
      if (isa<PoisonValue>(sources[first]) || none_of(from, [&](int lane) { return is_in(lane, first); })) continue;
      size_t second = first;
      for (size_t other = first + 1; other < sources.size() && second == first; ++other)
        if (any_of(from, [&](int lane) { return is_in(lane, other); })) second = other;
      SmallVector<int> mask;
      for (int& lane : from) {
        int source_index = lane < 0 ? -1 : lane % static_cast<int>(source_lanes);
        if (is_in(lane, first))
          mask.push_back(source_index);
        else if (second != first && is_in(lane, second))
          mask.push_back(source_index + static_cast<int>(source_lanes));
        else
          mask.push_back(-1);
        if (mask.back() >= 0) lane = -1;
      }
      Value* two = sources[first];
      bool is_itself = second == first && mask.size() == source_lanes && all_of(enumerate(mask), [](auto lane) {
                         return lane.value() < 0 || lane.value() == static_cast<int>(lane.index());
                       });
      Value* across = second == first ? nullptr : load_across(sources[first], sources[second], mask);
      if (across)
        two = across;
      else if (!is_itself)
        two = second == first ? builder_.CreateShuffleVector(sources[first], mask)
                              : builder_.CreateShuffleVector(sources[first], sources[second], mask);
      if (result) {
        SmallVector<int> choice;
        for (auto [lane, taken] : enumerate(mask))
          choice.push_back(static_cast<int>(taken < 0 ? lane : lane + mask.size()));
        result = builder_.CreateShuffleVector(result, two, choice);
      } else {
        result = two;
      }
    }
    if (!result)
      result = PoisonValue::get(
          FixedVectorType::get(sources[0]->getType()->getScalarType(), static_cast<unsigned>(lanes.size())));
    return result;
  }

  // A shuffle across the boundary of two consecutive loads of invariant memory becomes a load of its own.
  Value* load_across(Value* one, Value* other, ArrayRef<int> mask) {
    auto *low = dyn_cast<LoadInst>(one), *high = dyn_cast<LoadInst>(other);
    if (!low || !high || low->getType() != high->getType() || mask[0] < 0) return nullptr;
    if (mask.size() != lanes_ || cast<FixedVectorType>(low->getType())->getNumElements() != lanes_) return nullptr;
    for (auto [lane, source_index] : enumerate(mask))
      if (source_index != mask[0] + static_cast<int>(lane)) return nullptr;
    const DataLayout& layout = low->getDataLayout();
    APInt low_offset(64, 0), high_offset(64, 0);
    for (LoadInst* load : {low, high})
      if (!load->isSimple() || !load->hasMetadata(LLVMContext::MD_invariant_load)) return nullptr;
    Value* base = low->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, low_offset, true);
    if (base != high->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, high_offset, true) ||
        high_offset - low_offset != layout.getTypeStoreSize(low->getType()))
      return nullptr;
    uint64_t distance = static_cast<uint64_t>(mask[0]) * layout.getTypeStoreSize(low->getType()->getScalarType());
    LoadInst* load = builder_.CreateAlignedLoad(
        low->getType(), builder_.CreateConstGEP1_64(builder_.getInt8Ty(), low->getPointerOperand(), distance),
        commonAlignment(low->getAlign(), distance));
    load->copyMetadata(*low, {LLVMContext::MD_invariant_load});
    return load;
  }

  BasicBlock& block_;
  unsigned lanes_;
  bool has_phis_;
  IRBuilder<> builder_;
  DenseMap<Value*, Parts> parts_;
};

}  // namespace

void split_wide_vectors(BasicBlock& block, const VectorIsa& vector_isa) {
  VectorSplitter(block, vector_isa.num_words()).run();
}

void split_stores_in_order(Function& function, const VectorIsa& vector_isa) {
  for (Instruction& instruction : make_early_inc_range(instructions(function))) {
    auto* store = dyn_cast<StoreInst>(&instruction);
    auto* type = store ? dyn_cast<FixedVectorType>(store->getValueOperand()->getType()) : nullptr;
    // 0 for i1 and pointers.
    uint64_t bytes = type ? type->getScalarSizeInBits() / 8 : 0;
    if (bytes == 0 || !store->isSimple() || type->getScalarSizeInBits() % 8 != 0) continue;
    const unsigned lanes = vector_isa.num_elements(bytes);
    if (store->getAlign() >= vector_isa.register_bytes || type->getNumElements() <= lanes ||
        type->getNumElements() % lanes != 0)
      continue;
    IRBuilder<> builder(store);
    for (unsigned first = 0; first < type->getNumElements(); first += lanes) {
      Value* part = builder.CreateShuffleVector(store->getValueOperand(), createSequentialMask(first, lanes, 0));
      Value* address = builder.CreateConstGEP1_64(builder.getInt8Ty(), store->getPointerOperand(), first * bytes);
      builder.CreateAlignedStore(part, address, commonAlignment(store->getAlign(), first * bytes))
          ->copyMetadata(*store);
    }
    store->eraseFromParent();
  }
}

}  // namespace kiln
