#include "compiler/analysis/memory_after_barrier.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IntrinsicInst.h>

#include "compiler/ir/convergence_point.h"
#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/ordering_edges.h"

namespace kiln {

using namespace llvm;

namespace {

enum MemoryUse : unsigned { kRead = 1, kWritten = 2, kUpdated = 4 };

struct Access {
  const Value* address;  // null: unknown
  unsigned uses;
};

// A call whose effects other threads do not observe.
bool is_quiet(const CallBase& call) {
  const auto* intrinsic = dyn_cast<IntrinsicInst>(&call);
  return call.onlyAccessesInaccessibleMemory() || convergence_point_at(call) ||
         (intrinsic && intrinsic->isAssumeLikeIntrinsic());
}

SmallVector<Access, 2> accesses_of(const Instruction& instruction) {
  if (const auto* load = dyn_cast<LoadInst>(&instruction)) {
    if (load->hasMetadata(LLVMContext::MD_invariant_load)) return {};
    return {{load->getPointerOperand(), kRead}};
  }
  if (const auto* store = dyn_cast<StoreInst>(&instruction)) return {{store->getPointerOperand(), kWritten}};
  if (const auto* update = dyn_cast<AtomicRMWInst>(&instruction))
    return {{update->getPointerOperand(), update->use_empty() ? kUpdated : kRead | kWritten}};
  if (const auto* exchange = dyn_cast<AtomicCmpXchgInst>(&instruction))
    return {{exchange->getPointerOperand(), kRead | kWritten}};
  if (const auto* call = dyn_cast<CallBase>(&instruction); call && is_quiet(*call)) return {};
  if (const auto* copy = dyn_cast<MemTransferInst>(&instruction))
    return {{copy->getDest(), kWritten}, {copy->getSource(), kRead}};
  if (const auto* set = dyn_cast<MemSetInst>(&instruction)) return {{set->getDest(), kWritten}};
  unsigned uses = (instruction.mayReadFromMemory() ? kRead : 0u) | (instruction.mayWriteToMemory() ? kWritten : 0u);
  if (uses == 0) return {};
  return {{nullptr, uses}};
}

// The objects that the address may point into, without memory that is private to a thread.
SmallVector<const Value*> shared_objects(const Value* address) {
  SmallVector<const Value*> objects;
  getUnderlyingObjects(address, objects, /*LI=*/nullptr, /*MaxLookup=*/0);
  erase_if(objects, [](const Value* object) {
    return isa<AllocaInst, ConstantPointerNull, UndefValue>(object) || is_sink(object) || is_zeros(object);
  });
  return objects;
}

}  // namespace

bool writes_shared(const Instruction& instruction) {
  return any_of(accesses_of(instruction), [](const Access& access) {
    return (access.uses & (kWritten | kUpdated)) != 0 && (!access.address || !shared_objects(access.address).empty());
  });
}

MemoryAfterBarrier::MemoryAfterBarrier(BasicBlock& barrier) {
  for (const BasicBlock* block : reachable_from(barrier))
    for (const Instruction& instruction : *block) find(instruction);
}

bool MemoryAfterBarrier::is_met_by(const Instruction& instruction) const {
  for (const Access& access : accesses_of(instruction)) {
    // The accesses that it must not be reordered with.
    unsigned others = 0;
    if (access.uses & kRead) others |= kWritten | kUpdated;
    if (access.uses & kWritten) others |= kRead | kWritten | kUpdated;
    if (access.uses & kUpdated) others |= kRead | kWritten;
    if (!access.address) return true;
    for (const Value* object : shared_objects(access.address)) {
      std::optional<Memory> memory = memory_of(object);
      if (!memory || ((uses_.lookup(*memory) | unknown_) & others) != 0) return true;
    }
  }
  return false;
}

std::optional<MemoryAfterBarrier::Memory> MemoryAfterBarrier::memory_of(const Value* object) {
  if (isa<GlobalVariable>(object)) return Memory{object, 0};
  const auto* address = dyn_cast<LoadInst>(object);
  if (!address || !address->hasMetadata(LLVMContext::MD_invariant_load)) return std::nullopt;
  APInt offset(64, 0);
  const Value* base = address->getPointerOperand()->stripAndAccumulateConstantOffsets(address->getDataLayout(), offset,
                                                                                      /*AllowNonInbounds=*/true);
  // The table of the arguments' addresses is itself found through an address.
  if (const auto* arguments = dyn_cast<LoadInst>(base)) base = arguments->getPointerOperand();
  return Memory{base, offset.getSExtValue()};
}

void MemoryAfterBarrier::find(const Instruction& instruction) {
  for (const Access& access : accesses_of(instruction)) {
    if (!access.address)
      unknown_ |= access.uses;
    else
      for (const Value* object : shared_objects(access.address)) {
        if (std::optional<Memory> memory = memory_of(object))
          uses_[*memory] |= access.uses;
        else
          unknown_ |= access.uses;
      }
  }
}

}  // namespace kiln
