#include "compiler/nvptx/asynchronous_copies.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/MemoryLocation.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cstddef>
#include <optional>
#include <utility>

#include "compiler/ir/metadata.h"
#include "compiler/nvptx/barrier_intervals.h"
#include "compiler/nvptx/ptx_generator.h"

namespace kiln {
namespace {

using namespace llvm;

// What `cp.async.cg` copies. Of 4 or 8 bytes, it is slower than a load and a store.
constexpr uint64_t kCopiedBytes = 16;
constexpr size_t kMostCopies = 64;  // to one variable between two barriers

// The load that the store copies, if it can be done by `cp.async`.
LoadInst* copied_load(StoreInst& store, const DataLayout& layout) {
  auto* load = dyn_cast<LoadInst>(store.getValueOperand());
  if (!load || !store.isSimple() || !load->isSimple() || !load->hasOneUse() || load->getParent() != store.getParent() ||
      !load->hasMetadata(LLVMContext::MD_invariant_load) || load->getPointerAddressSpace() != kGlobalSpace ||
      store.getPointerAddressSpace() != kSharedSpace)
    return nullptr;
  if (layout.getTypeStoreSize(load->getType()) != TypeSize::getFixed(kCopiedBytes)) return nullptr;
  return load->getAlign() < kCopiedBytes || store.getAlign() < kCopiedBytes ? nullptr : load;
}

void copy(StoreInst& store, LoadInst& load) {
  IRBuilder<> builder(&store);
  builder.CreateIntrinsic(Intrinsic::nvvm_cp_async_cg_shared_global_16, {},
                          {store.getPointerOperand(), load.getPointerOperand()});
  store.eraseFromParent();
  load.eraseFromParent();
}

struct Copies {
  GlobalVariable* variable;
  SmallVector<Instruction*> stores;
};

// The block's copies, by variable and barrier interval.
SmallVector<Copies> copies_in(BasicBlock& block) {
  SmallVector<Copies> found;
  MapVector<GlobalVariable*, SmallVector<Instruction*>> stores;
  auto end_interval = [&] {
    for (auto& [variable, copies] : stores) found.push_back({variable, std::move(copies)});
    stores.clear();
  };
  for (Instruction& instruction : block) {
    if (is_hardware_barrier(instruction)) end_interval();
    if (auto* store = dyn_cast<StoreInst>(&instruction); store && copied_load(*store, block.getDataLayout()))
      if (GlobalVariable* variable = threadgroup_variable_of(*store->getPointerOperand()))
        stores[variable].push_back(store);
  }
  end_interval();
  return found;
}

// Whether the stores write to an address once in their interval, all together.
bool write_once(ArrayRef<Instruction*> stores, bool is_repeated, AAResults& aliases) {
  const MDNode* node = stores.front()->getMetadata(kDisjoint);
  if (node && all_of(stores, [&](const Instruction* store) { return store->getMetadata(kDisjoint) == node; }))
    return true;
  if (is_repeated || stores.size() > kMostCopies) return false;
  auto location = [](const Instruction* store) {
    return MemoryLocation(getLoadStorePointerOperand(store), LocationSize::precise(kCopiedBytes));
  };
  for (size_t i = 0; i < stores.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (!aliases.isNoAlias(location(stores[i]), location(stores[j]))) return false;
  return true;
}

}  // namespace

bool copy_asynchronously(Function& function, FunctionAnalysisManager& analyses) {
  // Most kernels have no tiles, and need no alias analysis.
  if (none_of(instructions(function), is_hardware_barrier)) return false;
  const DataLayout& layout = function.getDataLayout();
  auto& aliases = analyses.getResult<AAManager>(function);
  SmallPtrSet<Instruction*, 8> waits;
  bool has_changed = false;
  for (BasicBlock& block : function) {
    for (const Copies& copies : copies_in(block)) {
      std::optional<BarrierInterval> interval = interval_of_lone_stores(*copies.variable, copies.stores);
      if (!interval || !write_once(copies.stores, interval->is_repeated, aliases)) continue;
      waits.insert(interval->barriers.begin(), interval->barriers.end());
      for (Instruction* instruction : copies.stores) {
        auto& store = *cast<StoreInst>(instruction);
        copy(store, *copied_load(store, layout));
      }
      has_changed = true;
    }
  }
  for (Instruction* barrier : waits) {
    IRBuilder<> builder(barrier);
    builder.CreateIntrinsic(Intrinsic::nvvm_cp_async_wait_all, {}, {});
  }
  return has_changed;
}

}  // namespace kiln
