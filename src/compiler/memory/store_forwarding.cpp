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

#include "compiler/ir/remarks.h"
#include "core/cpu_functions.h"
#include "core/cpu_image.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr const char* kStoreForwarding = "store-forwarding";

// Stores that are visited for one load, and in total.
constexpr unsigned kMostForALoad = 64, kMostInAll = 8000;

// Nested phis that are visited.
constexpr unsigned kMostBranches = 40;

// Vectors and scalars that one load is assembled from.
constexpr size_t kMostVectors = 3, kMostScalars = 8;

// An access to elements at known offsets from the start of threadgroup memory.
struct Access {
  Value* base;
  int64_t offset;         // in bytes
  Type* type;             // of all elements
  Value* value;           // the stored value; for a load, the value of masked-off elements, or null
  Constant* is_accessed;  // mask of the elements; null: all
  // Of each element, relative to `offset`, if the elements are not consecutive.
  SmallVector<int64_t> element_offsets = {};
};

unsigned count_of(Type* type) {
  auto* vector = dyn_cast<FixedVectorType>(type);
  return vector ? vector->getNumElements() : 1;
}

// The source of a loaded element.
struct Source {
  Value* value = nullptr;
  unsigned element = 0;
};

class StoreForwarding {
 public:
  StoreForwarding(Function& function, FunctionAnalysisManager& analyses, const VectorIsa& vector_isa)
      : function_(function), layout_(function.getDataLayout()), analyses_(analyses), isa_(vector_isa) {}

  bool run() {
    SmallVector<Instruction*> loads;
    for (Instruction& instruction : instructions(function_)) {
      if (is_threadgroup_memory(&instruction)) memory_pointers_.push_back(&instruction);
      if (std::optional<Access> access = access_of(instruction); access && instruction.mayReadFromMemory()) {
        if (is_threadgroup_memory(access->base))
          loads.push_back(&instruction);
        else if (keeps_remarks(function_) && is_threadgroup_memory(getUnderlyingObject(access->base)))
          remark(kStoreForwarding, instruction, "this load of threadgroup memory stays: its index is not known");
      }
    }
    if (loads.empty()) return false;
    memory_ssa_ = &analyses_.getResult<MemorySSAAnalysis>(function_).getMSSA();
    SmallVector<Instruction*> done;
    for (Instruction* load : loads)
      if (forward(*load)) done.push_back(load);
    for (Instruction* load : done) load->eraseFromParent();
    if (!done.empty()) erase_dead_stores();
    return !done.empty();
  }

 private:
  // The address of the threadgroup's memory, loaded from the record.
  static bool is_threadgroup_memory(const Value* value) {
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

  // A gather at constant offsets, as where lanes read their neighbours and some of these would be out of bounds.
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
          access.element_offsets[i] += number->getSExtValue() * size;
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

  // Whether the instruction writes to other memory than the threadgroup's: to a launch's arguments, or to variables of
  // this function.
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
      return load && load->hasMetadata(LLVMContext::MD_invariant_load) && !is_threadgroup_memory(load);
    });
  }

  // The nearest access at or above this one that may write to threadgroup memory; null if paths with different ones
  // join.
  MemoryAccess* next_clobber(MemoryAccess* access, unsigned depth = 0) {
    while (++visited_ <= kMostInAll && depth < kMostBranches) {
      if (auto* phi = dyn_cast<MemoryPhi>(access)) {
        MemoryAccess* clobber = clobbers_.lookup(phi);
        if (clobber == phi) return phi;  // being visited: a loop's back edge
        if (clobber && isa<MemoryPhi>(clobber)) {
          access = clobber;
          continue;
        }
        if (clobber) return clobber;
        clobbers_[phi] = phi;
        MemoryAccess* common = nullptr;
        for (Value* incoming : phi->incoming_values()) {
          MemoryAccess* one = next_clobber(cast<MemoryAccess>(incoming), depth + 1);
          // A loop that writes elsewhere preserves the earlier contents.
          if (one == phi) continue;
          if (!one || (common && common != one)) {
            common = nullptr;
            break;
          }
          common = one;
        }
        clobbers_[phi] = common;
        return common;
      }
      auto* definition = cast<MemoryDef>(access);
      if (memory_ssa_->isLiveOnEntryDef(access) || !writes_elsewhere(*definition->getMemoryInst())) return access;
      access = definition->getDefiningAccess();
    }
    return nullptr;
  }

  // Finds the stored value of each element; false if one is unknown.
  bool find_sources(Instruction& load, const Access& required, SmallVectorImpl<Source>& sources) {
    unsigned count = count_of(required.type);
    int64_t size = static_cast<int64_t>(layout_.getTypeStoreSize(required.type->getScalarType()));
    sources.resize(count);
    unsigned missing = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (is_accessed(required, i))
        ++missing;
      else
        sources[i] = {required.value, i};
    }
    MemoryAccess* at = memory_ssa_->getMemoryAccess(&load)->getDefiningAccess();
    for (unsigned visited = 0; missing > 0; ++visited) {
      at = next_clobber(at);
      if (!at || visited == kMostForALoad) return fail("several paths, or many stores, lead to it");
      if (memory_ssa_->isLiveOnEntryDef(at)) return fail("no store to it is known");
      auto* definition = cast<MemoryDef>(at);
      Instruction& instruction = *definition->getMemoryInst();
      at = definition->getDefiningAccess();
      std::optional<Access> stored = access_of(instruction);
      if (!stored) return fail("what may write before it is no store to an index that is known");
      if (stored->base != required.base) return fail("where a store before it writes is not known");
      int64_t stored_bytes = static_cast<int64_t>(layout_.getTypeStoreSize(stored->type).getFixedValue());
      bool sizes_match =
          layout_.getTypeStoreSize(stored->type->getScalarType()).getFixedValue() == static_cast<uint64_t>(size);
      for (unsigned i = 0; i < count; ++i) {
        if (sources[i].value) continue;
        int64_t distance = required.offset +
                           (required.element_offsets.empty() ? size * i : required.element_offsets[i]) - stored->offset;
        if (distance >= stored_bytes || distance + size <= 0) continue;
        if (!sizes_match || distance % size != 0) return fail("elements of another size were stored");
        auto element = static_cast<unsigned>(distance / size);
        if (!is_accessed(*stored, element)) continue;
        sources[i] = {stored->value, element};
        --missing;
      }
    }
    return true;
  }

  bool fail(const char* why) {
    why_ = why;
    return false;
  }

  bool forward(Instruction& load) {
    std::optional<Access> required = access_of(load);
    if (!required) return false;
    Value* value = stored_value(load, *required);
    const char* why = why_;
    if (!value) value = partly_stored(load, *required);
    if (!value) {
      remark(kStoreForwarding, load, "this load of threadgroup memory stays: ", why);
      return false;
    }
    load.replaceAllUsesWith(value);
    return true;
  }

  // Forwards whole registers whose stores are known, as where each simdgroup has stored its number, and loads the
  // others.
  Value* partly_stored(Instruction& load, const Access& required) {
    Type* element = required.type->getScalarType();
    const unsigned lanes = isa_.num_elements(layout_.getTypeStoreSize(element).getFixedValue());
    const unsigned count = count_of(required.type);
    // A number of several registers has no elements in one: shuffles of vectors may have become shifts of such numbers.
    if (!isa<LoadInst>(load) || lanes == 0 || count <= lanes || count % lanes != 0) return nullptr;
    auto* type = FixedVectorType::get(element, lanes);
    SmallVector<Value*> parts;
    for (unsigned first = 0; first < count; first += lanes) {
      const int64_t offset = required.offset + int64_t{first / lanes} * isa_.register_bytes;
      parts.push_back(stored_value(load, {required.base, offset, type, nullptr, nullptr}));
    }
    if (none_of(parts, [](Value* part) { return part; })) return nullptr;
    IRBuilder<> builder(&load);
    for (auto [i, part] : enumerate(parts)) {
      if (part) continue;
      const uint64_t offset = i * isa_.register_bytes;
      Value* address = builder.CreateConstGEP1_64(builder.getInt8Ty(), getLoadStorePointerOperand(&load), offset);
      part = builder.CreateAlignedLoad(type, address, commonAlignment(cast<LoadInst>(load).getAlign(), offset));
    }
    return concatenateVectors(builder, parts);
  }

  // The value known to have been stored; null if unknown.
  Value* stored_value(Instruction& load, const Access& required) {
    SmallVector<Source> sources;
    if (!find_sources(load, required, sources)) return nullptr;
    SmallVector<Value*> vectors, scalars;
    for (const Source& source : sources) {
      auto& group = source.value->getType()->isVectorTy() ? vectors : scalars;
      if (!is_contained(group, source.value)) group.push_back(source.value);
    }
    if (vectors.size() > kMostVectors || scalars.size() > kMostScalars) {
      fail("it would be put together from too many stores");
      return nullptr;
    }
    IRBuilder<> builder(&load);
    Type* element = required.type->getScalarType();
    if (!required.type->isVectorTy()) {
      Value* value = sources[0].value;
      if (!vectors.empty()) value = builder.CreateExtractElement(value, sources[0].element);
      return builder.CreateBitCast(value, element);
    }
    int count = static_cast<int>(sources.size());
    Value* result = nullptr;
    for (Value* vector : vectors) {
      auto* type = cast<FixedVectorType>(vector->getType());
      auto* cast_type = FixedVectorType::get(element, type->getNumElements());
      Value* converted = builder.CreateBitCast(vector, cast_type);
      SmallVector<int> mask;
      bool is_first = !result, sizes_match = type->getNumElements() == static_cast<unsigned>(count);
      // If lengths differ, a first shuffle moves the elements to their positions.
      if (!sizes_match) {
        for (const Source& source : sources)
          mask.push_back(source.value == vector ? static_cast<int>(source.element) : PoisonMaskElem);
        converted = builder.CreateShuffleVector(converted, mask);
        mask.clear();
      }
      for (int i = 0; i < count; ++i) {
        const Source& source = sources[static_cast<unsigned>(i)];
        int taken = sizes_match ? static_cast<int>(source.element) : i;
        if (source.value == vector)
          mask.push_back(is_first ? taken : count + taken);
        else
          mask.push_back(is_first ? PoisonMaskElem : i);
      }
      // One shuffle combines two vectors.
      if (is_first && sizes_match && vectors.size() > 1) {
        auto* second = vectors[1];
        if (second->getType()->isVectorTy() && count_of(second->getType()) == static_cast<unsigned>(count)) {
          for (int i = 0; i < count; ++i) {
            const Source& source = sources[static_cast<unsigned>(i)];
            if (source.value == second) mask[static_cast<unsigned>(i)] = count + static_cast<int>(source.element);
          }
          Value* other = builder.CreateBitCast(second, FixedVectorType::get(element, static_cast<unsigned>(count)));
          result = builder.CreateShuffleVector(converted, other, mask);
          continue;
        }
      }
      if (!is_first && sizes_match && vector == vectors[1] &&
          count_of(vectors[0]->getType()) == static_cast<unsigned>(count))
        continue;  // combined already
      result = is_first ? builder.CreateShuffleVector(converted, mask)
                        : builder.CreateShuffleVector(result, converted, mask);
    }
    if (!result) result = PoisonValue::get(required.type);
    for (int i = 0; i < count; ++i) {
      Value* value = sources[static_cast<unsigned>(i)].value;
      if (!value->getType()->isVectorTy())
        result = builder.CreateInsertElement(result, builder.CreateBitCast(value, element), static_cast<uint64_t>(i));
    }
    return result;
  }

  // Erases the stores if the memory is only stored to.
  void erase_dead_stores() {
    SmallVector<Instruction*> stores;
    SmallVector<Value*> worklist(memory_pointers_.begin(), memory_pointers_.end());
    while (!worklist.empty()) {
      Value* address = worklist.pop_back_val();
      for (User* user : address->users()) {
        auto* store = dyn_cast<StoreInst>(user);
        auto* call = dyn_cast<IntrinsicInst>(user);
        if (isa<GetElementPtrInst>(user) && user->getType()->isPointerTy()) {
          worklist.push_back(user);
        } else if (store && store->isSimple() && store->getPointerOperand() == address &&
                   store->getValueOperand() != address) {
          stores.push_back(store);
        } else if (isa<GetElementPtrInst>(user) && user->use_empty()) {
          continue;  // the address of a forwarded gather
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
  const VectorIsa& isa_;
  MemorySSA* memory_ssa_ = nullptr;
  SmallVector<Instruction*> memory_pointers_;
  // By phi: its nearest clobber, or a phi above it that was being visited, or the phi itself while it is being visited.
  DenseMap<MemoryPhi*, MemoryAccess*> clobbers_;
  unsigned visited_ = 0;
  const char* why_ = "";  // the last load stays
};

}  // namespace

PreservedAnalyses StoreForwardingPass::run(Function& function, FunctionAnalysisManager& analyses) {
  if (!StoreForwarding(function, analyses, vector_isa).run()) return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}

}  // namespace kiln
