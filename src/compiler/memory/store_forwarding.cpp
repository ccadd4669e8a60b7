#include "compiler/memory/store_forwarding.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/MemorySSA.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <cstddef>
#include <optional>

#include "core/cpu_image.h"

namespace kiln {
namespace {

using namespace llvm;

// Stores that are looked at for one load, and for all.
constexpr unsigned kMostForALoad = 64, kMostInAll = 8000;

// Branches, one behind the other, that are looked through.
constexpr unsigned kMostBranches = 40;

// Registers that one load is put together from, and numbers.
constexpr size_t kMostVectors = 3, kMostNumbers = 8;

// An access to elements at known distances from the beginning of the memory.
struct Access {
  Value* base;
  int64_t offset;         // in bytes
  Type* type;             // of all elements
  Value* value;           // what is stored; of a load, what elements get that are not loaded, or null
  Constant* is_accessed;  // of each element; null: all
  // Of each element from `offset`, where they do not follow one another.
  SmallVector<int64_t> places = {};
};

unsigned count_of(Type* type) {
  auto* vector = dyn_cast<FixedVectorType>(type);
  return vector ? vector->getNumElements() : 1;
}

// Where an element of what is loaded comes from.
struct Source {
  Value* value = nullptr;
  unsigned element = 0;
};

class StoreForwarding {
 public:
  StoreForwarding(Function& function, FunctionAnalysisManager& analyses, unsigned register_bytes)
      : function_(function), layout_(function.getDataLayout()), analyses_(analyses), register_bytes_(register_bytes) {}

  bool run() {
    SmallVector<Instruction*> loads;
    for (Instruction& instruction : instructions(function_)) {
      if (is_memory(&instruction)) memories_.push_back(&instruction);
      if (std::optional<Access> access = access_of(instruction); access && instruction.mayReadFromMemory())
        if (is_memory(access->base)) loads.push_back(&instruction);
    }
    if (loads.empty()) return false;
    memory_ = &analyses_.getResult<MemorySSAAnalysis>(function_).getMSSA();
    SmallVector<Instruction*> done;
    for (Instruction* load : loads)
      if (forward(*load)) done.push_back(load);
    for (Instruction* load : done) load->eraseFromParent();
    if (!done.empty()) forget_stores();
    return !done.empty();
  }

 private:
  // The address of the threadgroup's memory, from the record.
  static bool is_memory(const Value* value) {
    const auto* load = dyn_cast<LoadInst>(value);
    if (!load || !load->getType()->isPointerTy()) return false;
    APInt offset(64, 0);
    const Value* base =
        load->getPointerOperand()->stripAndAccumulateConstantOffsets(load->getDataLayout(), offset, true);
    const auto* argument = dyn_cast<Argument>(base);
    return argument && argument->getArgNo() == kCpuRecord && offset == offsetof(CpuThread, threadgroup_memory);
  }

  std::optional<Access> access_of(Instruction& instruction) const {
    Value* pointer = nullptr;
    Access access{};
    if (auto* load = dyn_cast<LoadInst>(&instruction); load && load->isSimple()) {
      pointer = load->getPointerOperand();
      access.type = load->getType();
    } else if (auto* store = dyn_cast<StoreInst>(&instruction); store && store->isSimple()) {
      pointer = store->getPointerOperand();
      access.value = store->getValueOperand();
      access.type = access.value->getType();
    } else if (auto* call = dyn_cast<IntrinsicInst>(&instruction)) {
      if (call->getIntrinsicID() == Intrinsic::masked_gather) return gather_of(*call);
      bool is_load = call->getIntrinsicID() == Intrinsic::masked_load;
      if (!is_load && call->getIntrinsicID() != Intrinsic::masked_store) return std::nullopt;
      access.value = call->getArgOperand(is_load ? 3 : 0);
      access.type = access.value->getType();
      pointer = call->getArgOperand(is_load ? 0 : 1);
      access.is_accessed = dyn_cast<Constant>(call->getArgOperand(is_load ? 2 : 3));
      if (!access.is_accessed) return std::nullopt;
    } else {
      return std::nullopt;
    }
    uint64_t bits = layout_.getTypeSizeInBits(access.type->getScalarType());
    if (access.type->getScalarType()->isPointerTy() || bits % 8 != 0 || !isPowerOf2_64(bits)) return std::nullopt;
    APInt offset(64, 0);
    access.base = pointer->stripAndAccumulateConstantOffsets(layout_, offset, true);
    access.offset = offset.getSExtValue();
    return access;
  }

  // Of elements at places that are known, as where lanes read beside their own and some of them would be outside.
  std::optional<Access> gather_of(IntrinsicInst& call) const {
    auto* address = dyn_cast<GetElementPtrInst>(call.getArgOperand(0));
    auto* is_accessed = dyn_cast<Constant>(call.getArgOperand(2));
    Type* element = call.getType()->getScalarType();
    if (!address || !is_accessed || address->getPointerOperandType()->isVectorTy() || element->isPointerTy())
      return std::nullopt;
    unsigned count = count_of(call.getType());
    Access access{nullptr, 0, call.getType(), call.getArgOperand(3), is_accessed, SmallVector<int64_t>(count, 0)};
    for (auto level = gep_type_begin(address); level != gep_type_end(address); ++level) {
      auto* indices = dyn_cast<Constant>(level.getOperand());
      if (!indices || level.isStruct()) return std::nullopt;
      auto size = static_cast<int64_t>(level.getSequentialElementStride(layout_).getFixedValue());
      for (unsigned i = 0; i < count; ++i) {
        Constant* index = indices->getType()->isVectorTy() ? indices->getAggregateElement(i) : indices;
        auto* number = dyn_cast_or_null<ConstantInt>(index);
        if (number && number->getValue().getSignificantBits() <= 32)
          access.places[i] += number->getSExtValue() * size;
        else if (StoreForwarding::is_accessed(access, i))
          return std::nullopt;
      }
    }
    APInt offset(64, 0);
    access.base = address->getPointerOperand()->stripAndAccumulateConstantOffsets(layout_, offset, true);
    access.offset = offset.getSExtValue();
    return access;
  }

  static bool is_accessed(const Access& access, unsigned element) {
    if (!access.is_accessed) return true;
    Constant* one = access.is_accessed->getAggregateElement(element);
    return !one || !one->isNullValue();
  }

  // Whether the instruction writes somewhere else than to threadgroup memory: to what the launch was given, or to
  // variables of this function.
  bool writes_elsewhere(const Instruction& instruction) const {
    const Value* pointer = nullptr;
    if (const auto* store = dyn_cast<StoreInst>(&instruction)) pointer = store->getPointerOperand();
    if (const auto* call = dyn_cast<IntrinsicInst>(&instruction)) {
      if (call->getIntrinsicID() == Intrinsic::masked_store || call->getIntrinsicID() == Intrinsic::masked_scatter)
        pointer = call->getArgOperand(1);
    }
    if (!pointer) return false;
    // LLVM does not look through vectors of addresses.
    while (pointer->getType()->isVectorTy() && isa<GetElementPtrInst>(pointer))
      pointer = cast<GetElementPtrInst>(pointer)->getPointerOperand();
    SmallVector<const Value*> objects;
    getUnderlyingObjects(pointer, objects);
    return all_of(objects, [](const Value* object) {
      if (isa<AllocaInst, GlobalVariable>(object)) return true;
      const auto* load = dyn_cast<LoadInst>(object);
      return load && load->hasMetadata(LLVMContext::MD_invariant_load) && !is_memory(load);
    });
  }

  // The next access at or above this one that may write to threadgroup memory; null where several ways come together
  // that do not all come from one.
  MemoryAccess* next_above(MemoryAccess* access, unsigned depth = 0) {
    while (++looked_ <= kMostInAll && depth < kMostBranches) {
      if (auto* phi = dyn_cast<MemoryPhi>(access)) {
        MemoryAccess* above = above_.lookup(phi);
        if (above == phi) return phi;  // it is being looked at: the way round a loop
        if (above && isa<MemoryPhi>(above)) {
          access = above;
          continue;
        }
        if (above) return above;
        above_[phi] = phi;
        MemoryAccess* common = nullptr;
        for (Value* incoming : phi->incoming_values()) {
          MemoryAccess* one = next_above(cast<MemoryAccess>(incoming), depth + 1);
          // A loop that writes elsewhere leaves what was there before.
          if (one == phi) continue;
          if (!one || (common && common != one)) {
            common = nullptr;
            break;
          }
          common = one;
        }
        above_[phi] = common;
        return common;
      }
      auto* definition = cast<MemoryDef>(access);
      if (memory_->isLiveOnEntryDef(access) || !writes_elsewhere(*definition->getMemoryInst())) return access;
      access = definition->getDefiningAccess();
    }
    return nullptr;
  }

  // What each element was stored by; false where that is not known of all.
  bool find_sources(Instruction& load, const Access& wanted, SmallVectorImpl<Source>& sources) {
    unsigned count = count_of(wanted.type);
    int64_t size = static_cast<int64_t>(layout_.getTypeStoreSize(wanted.type->getScalarType()));
    sources.resize(count);
    unsigned missing = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (is_accessed(wanted, i))
        ++missing;
      else
        sources[i] = {wanted.value, i};
    }
    MemoryAccess* at = memory_->getMemoryAccess(&load)->getDefiningAccess();
    for (unsigned looked = 0; missing > 0; ++looked) {
      at = next_above(at);
      if (!at || memory_->isLiveOnEntryDef(at) || looked == kMostForALoad) return false;
      auto* definition = cast<MemoryDef>(at);
      Instruction& instruction = *definition->getMemoryInst();
      at = definition->getDefiningAccess();
      std::optional<Access> stored = access_of(instruction);
      if (!stored) return false;
      if (stored->base != wanted.base) return false;
      int64_t stored_bytes = static_cast<int64_t>(layout_.getTypeStoreSize(stored->type).getFixedValue());
      bool is_invariant =
          layout_.getTypeStoreSize(stored->type->getScalarType()).getFixedValue() == static_cast<uint64_t>(size);
      for (unsigned i = 0; i < count; ++i) {
        if (sources[i].value) continue;
        int64_t distance = wanted.offset + (wanted.places.empty() ? size * i : wanted.places[i]) - stored->offset;
        if (distance >= stored_bytes || distance + size <= 0) continue;
        if (!is_invariant || distance % size != 0) return false;
        auto element = static_cast<unsigned>(distance / size);
        if (!is_accessed(*stored, element)) continue;
        sources[i] = {stored->value, element};
        --missing;
      }
    }
    return true;
  }

  bool forward(Instruction& load) {
    std::optional<Access> wanted = access_of(load);
    if (!wanted) return false;
    Value* value = stored_value(load, *wanted);
    if (!value) value = partly_stored(load, *wanted);
    if (!value) return false;
    load.replaceAllUsesWith(value);
    return true;
  }

  // Registers that were stored, as where each simdgroup has stored its number; others are loaded.
  Value* partly_stored(Instruction& load, const Access& wanted) {
    Type* element = wanted.type->getScalarType();
    const auto lanes = register_bytes_ / static_cast<unsigned>(layout_.getTypeStoreSize(element).getFixedValue());
    const unsigned count = count_of(wanted.type);
    if (!isa<LoadInst>(load) || count <= lanes || count % lanes != 0) return nullptr;
    auto* type = FixedVectorType::get(element, lanes);
    SmallVector<Value*> parts;
    for (unsigned first = 0; first < count; first += lanes) {
      const int64_t offset = wanted.offset + int64_t{first / lanes} * register_bytes_;
      parts.push_back(stored_value(load, {wanted.base, offset, type, nullptr, nullptr}));
    }
    if (none_of(parts, [](Value* part) { return part; })) return nullptr;
    IRBuilder<> builder(&load);
    for (auto [i, part] : enumerate(parts)) {
      if (part) continue;
      const uint64_t offset = i * register_bytes_;
      Value* address = builder.CreateConstGEP1_64(builder.getInt8Ty(), getLoadStorePointerOperand(&load), offset);
      part = builder.CreateAlignedLoad(type, address, commonAlignment(cast<LoadInst>(load).getAlign(), offset));
    }
    return concatenateVectors(builder, parts);
  }

  // What is known to have been stored; null where that is not known.
  Value* stored_value(Instruction& load, const Access& wanted) {
    SmallVector<Source> sources;
    if (!find_sources(load, wanted, sources)) return nullptr;
    SmallVector<Value*> vectors, numbers;
    for (const Source& source : sources) {
      auto& kind = source.value->getType()->isVectorTy() ? vectors : numbers;
      if (!is_contained(kind, source.value)) kind.push_back(source.value);
    }
    if (vectors.size() > kMostVectors || numbers.size() > kMostNumbers) return nullptr;
    IRBuilder<> builder(&load);
    Type* element = wanted.type->getScalarType();
    if (!wanted.type->isVectorTy()) {
      Value* value = sources[0].value;
      if (!vectors.empty()) value = builder.CreateExtractElement(value, sources[0].element);
      return builder.CreateBitCast(value, element);
    }
    int count = static_cast<int>(sources.size());
    Value* result = nullptr;
    for (Value* vector : vectors) {
      auto* type = cast<FixedVectorType>(vector->getType());
      auto* as_required = FixedVectorType::get(element, type->getNumElements());
      Value* own = builder.CreateBitCast(vector, as_required);
      SmallVector<int> mask;
      bool is_first = !result, is_invariant = type->getNumElements() == static_cast<unsigned>(count);
      // Where lengths differ, what is taken first comes to its place.
      if (!is_invariant) {
        for (const Source& source : sources)
          mask.push_back(source.value == vector ? static_cast<int>(source.element) : PoisonMaskElem);
        own = builder.CreateShuffleVector(own, mask);
        mask.clear();
      }
      for (int i = 0; i < count; ++i) {
        const Source& source = sources[static_cast<unsigned>(i)];
        int taken = is_invariant ? static_cast<int>(source.element) : i;
        if (source.value == vector)
          mask.push_back(is_first ? taken : count + taken);
        else
          mask.push_back(is_first ? PoisonMaskElem : i);
      }
      // Two registers are put together at once.
      if (is_first && is_invariant && vectors.size() > 1) {
        auto* second = vectors[1];
        if (second->getType()->isVectorTy() && count_of(second->getType()) == static_cast<unsigned>(count)) {
          for (int i = 0; i < count; ++i) {
            const Source& source = sources[static_cast<unsigned>(i)];
            if (source.value == second) mask[static_cast<unsigned>(i)] = count + static_cast<int>(source.element);
          }
          Value* other = builder.CreateBitCast(second, FixedVectorType::get(element, static_cast<unsigned>(count)));
          result = builder.CreateShuffleVector(own, other, mask);
          continue;
        }
      }
      if (!is_first && is_invariant && vector == vectors[1] &&
          count_of(vectors[0]->getType()) == static_cast<unsigned>(count))
        continue;  // there already
      result = is_first ? builder.CreateShuffleVector(own, mask) : builder.CreateShuffleVector(result, own, mask);
    }
    if (!result) result = PoisonValue::get(wanted.type);
    for (int i = 0; i < count; ++i) {
      Value* value = sources[static_cast<unsigned>(i)].value;
      if (!value->getType()->isVectorTy())
        result = builder.CreateInsertElement(result, builder.CreateBitCast(value, element), static_cast<uint64_t>(i));
    }
    return result;
  }

  // If all that is done with the memory is that it is stored to, it is not.
  void forget_stores() {
    SmallVector<Instruction*> stores;
    SmallVector<Value*> waiting(memories_.begin(), memories_.end());
    while (!waiting.empty()) {
      Value* address = waiting.pop_back_val();
      for (User* user : address->users()) {
        auto* store = dyn_cast<StoreInst>(user);
        auto* call = dyn_cast<IntrinsicInst>(user);
        if (isa<GetElementPtrInst>(user) && user->getType()->isPointerTy()) {
          waiting.push_back(user);
        } else if (store && store->isSimple() && store->getPointerOperand() == address &&
                   store->getValueOperand() != address) {
          stores.push_back(store);
        } else if (isa<GetElementPtrInst>(user) && user->use_empty()) {
          continue;  // what a gather had
        } else if (call && call->getIntrinsicID() == Intrinsic::masked_store && call->getArgOperand(1) == address) {
          stores.push_back(call);
        } else {
          return;
        }
      }
    }
    for (Instruction* store : stores) store->eraseFromParent();
  }

  Function& function_;
  const DataLayout& layout_;
  FunctionAnalysisManager& analyses_;
  const unsigned register_bytes_;
  MemorySSA* memory_ = nullptr;
  SmallVector<Instruction*> memories_;
  // Of phis: what is above them, or a phi above them that was being looked at, or the phi that is being looked at.
  DenseMap<MemoryPhi*, MemoryAccess*> above_;
  unsigned looked_ = 0;
};

}  // namespace

PreservedAnalyses StoreForwardingPass::run(Function& function, FunctionAnalysisManager& analyses) {
  if (!StoreForwarding(function, analyses, register_bytes).run()) return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}

}  // namespace kiln
