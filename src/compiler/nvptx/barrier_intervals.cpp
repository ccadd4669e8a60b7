#include "compiler/nvptx/barrier_intervals.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "compiler/nvptx/ptx_generator.h"

namespace kiln {

using namespace llvm;

namespace {

constexpr unsigned kGenericSpace = 0;

// Whether an access at the address may be one of the variable's memory.
bool may_be_in(const Value& address, const GlobalVariable& variable) {
  SmallVector<const Value*> objects;
  getUnderlyingObjects(&address, objects, /*LI=*/nullptr, /*MaxLookup=*/0);
  return any_of(objects, [&](const Value* object) {
    if (object == &variable) return true;
    if (isa<GlobalVariable, AllocaInst>(object)) return false;
    const unsigned space = object->getType()->getPointerAddressSpace();
    return space == kGenericSpace || space == kSharedSpace;
  });
}

bool is_asynchronous_copy(const CallBase& call) {
  switch (call.getIntrinsicID()) {
    case Intrinsic::nvvm_cp_async_cg_shared_global_16:
    case Intrinsic::nvvm_cp_async_wait_all: return true;
    default: return false;
  }
}

bool may_access(const Instruction& instruction, const GlobalVariable& variable) {
  if (!instruction.mayReadOrWriteMemory() || instruction.hasMetadata(LLVMContext::MD_invariant_load)) return false;
  if (const Value* address = getLoadStorePointerOperand(&instruction)) return may_be_in(*address, variable);
  if (const auto* update = dyn_cast<AtomicRMWInst>(&instruction))
    return may_be_in(*update->getPointerOperand(), variable);
  if (const auto* exchange = dyn_cast<AtomicCmpXchgInst>(&instruction))
    return may_be_in(*exchange->getPointerOperand(), variable);
  if (const auto* call = dyn_cast<CallBase>(&instruction)) {
    if (call->onlyAccessesInaccessibleMemory()) return false;
    if (isa<AssumeInst, NoAliasScopeDeclInst, LifetimeIntrinsic>(call)) return false;
    if (is_asynchronous_copy(*call)) return call->arg_size() > 0 && may_be_in(*call->getArgOperand(0), variable);
  }
  return true;
}

}  // namespace

bool is_hardware_barrier(const Instruction& instruction) {
  const auto* call = dyn_cast<IntrinsicInst>(&instruction);
  return call &&
         (call->getIntrinsicID() == Intrinsic::nvvm_barrier0 || call->getIntrinsicID() == Intrinsic::nvvm_barrier_sync);
}

bool reaches_without_barrier(BasicBlock& from, const BasicBlock& to) {
  SmallPtrSet<BasicBlock*, 16> seen;
  SmallVector<BasicBlock*> work{&from};
  while (!work.empty()) {
    BasicBlock* block = work.pop_back_val();
    if (block == &to) return true;
    if (seen.insert(block).second && none_of(*block, is_hardware_barrier)) append_range(work, successors(block));
  }
  return false;
}

GlobalVariable* threadgroup_variable_of(Value& address) {
  auto* variable = dyn_cast<GlobalVariable>(getUnderlyingObject(&address, /*MaxLookup=*/0));
  return variable && variable->getAddressSpace() == kSharedSpace ? variable : nullptr;
}

std::optional<BarrierInterval> interval_of_lone_stores(const GlobalVariable& variable, ArrayRef<Instruction*> stores) {
  const SmallPtrSet<Instruction*, 16> own(stores.begin(), stores.end());
  auto is_other_access = [&](Instruction& instruction) {
    return !own.contains(&instruction) && may_access(instruction, variable);
  };
  BasicBlock* block = stores.front()->getParent();
  BarrierInterval interval;
  SmallPtrSet<BasicBlock*, 16> seen;
  SmallVector<BasicBlock*> work;
  bool is_alone = true;
  // From `first` on; returns whether a path goes on behind the block.
  auto forward = [&](BasicBlock::iterator first, BasicBlock& within) {
    for (auto at = first; is_alone && at != within.end(); ++at) {
      if (is_hardware_barrier(*at)) {
        if (!is_contained(interval.barriers, &*at)) interval.barriers.push_back(&*at);
        return false;
      }
      is_alone = !is_other_access(*at);
    }
    if (is_alone && succ_empty(&within)) is_alone = false;  // an end without a barrier
    return is_alone;
  };
  if (forward(stores.front()->getIterator(), *block)) append_range(work, successors(block));
  while (is_alone && !work.empty()) {
    BasicBlock* next = work.pop_back_val();
    if (seen.insert(next).second && forward(next->begin(), *next)) append_range(work, successors(next));
  }
  interval.is_repeated = seen.contains(block);
  auto backward = [&](BasicBlock::reverse_iterator first, BasicBlock& within) {
    for (auto at = first; is_alone && at != within.rend(); ++at) {
      if (is_hardware_barrier(*at)) return false;
      is_alone = !is_other_access(*at);
    }
    return is_alone;
  };
  seen.clear();
  if (is_alone && backward(stores.front()->getReverseIterator(), *block)) append_range(work, predecessors(block));
  while (is_alone && !work.empty()) {
    BasicBlock* next = work.pop_back_val();
    if (seen.insert(next).second && backward(next->rbegin(), *next)) append_range(work, predecessors(next));
  }
  if (!is_alone) return std::nullopt;
  return interval;
}

}  // namespace kiln
