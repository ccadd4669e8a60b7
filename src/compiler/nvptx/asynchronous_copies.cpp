#include "compiler/nvptx/asynchronous_copies.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <optional>

#include "compiler/nvptx/barrier_intervals.h"
#include "compiler/nvptx/ptx_generator.h"

namespace kiln {
namespace {

using namespace llvm;

// What `cp.async.cg` copies. Of 4 or 8 bytes, it is slower than a load and a store.
constexpr uint64_t kCopiedBytes = 16;

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

}  // namespace

bool copy_asynchronously(Function& function) {
  const DataLayout& layout = function.getDataLayout();
  SmallPtrSet<Instruction*, 8> waits;
  bool has_changed = false;
  for (BasicBlock& block : function) {
    MapVector<GlobalVariable*, SmallVector<Instruction*>> stores;
    for (Instruction& instruction : block)
      if (auto* store = dyn_cast<StoreInst>(&instruction); store && copied_load(*store, layout))
        if (GlobalVariable* variable = threadgroup_variable_of(*store->getPointerOperand()))
          stores[variable].push_back(store);
    for (auto& [variable, copies] : stores) {
      std::optional<SmallVector<Instruction*>> barriers = barriers_after_lone_stores(*variable, copies);
      if (!barriers) continue;
      waits.insert(barriers->begin(), barriers->end());
      for (Instruction* instruction : copies) {
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
