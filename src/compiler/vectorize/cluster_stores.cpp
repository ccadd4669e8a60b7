#include "compiler/vectorize/cluster_stores.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/sections.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr int64_t kMaxDistance = 64;  // bytes between neighbors

Value* address_of(StoreInst& store) {
  Value* pointer = store.getPointerOperand();
  auto* select = dyn_cast<SelectInst>(pointer);
  return select && is_sink(select->getFalseValue()) ? select->getTrueValue() : pointer;
}

bool is_threadgroup_memory(const Value* object) {
  const auto* variable = dyn_cast<GlobalVariable>(object);
  return variable && variable->getSection() == kThreadgroupSection;
}

// A kernel argument, which is in device memory.
bool is_argument(const Value* object) {
  const auto* load = dyn_cast<LoadInst>(object);
  return load && load->hasMetadata(LLVMContext::MD_invariant_load);
}

// Whether a store before the instruction may be moved after it.
bool can_move_after(StoreInst& store, Instruction& instruction) {
  if (!instruction.mayReadOrWriteMemory() || isa<DbgInfoIntrinsic>(instruction)) return true;
  auto* load = dyn_cast<LoadInst>(&instruction);
  if (!load || !load->isSimple()) return false;
  if (load->hasMetadata(LLVMContext::MD_invariant_load)) return true;
  const Value *to = getUnderlyingObject(address_of(store)), *from = getUnderlyingObject(load->getPointerOperand());
  return (is_argument(to) && is_threadgroup_memory(from)) || (is_threadgroup_memory(to) && is_argument(from));
}

}  // namespace

void cluster_stores(Function& function, FunctionAnalysisManager& analyses) {
  ScalarEvolution* evolution = nullptr;
  for (BasicBlock& block : function) {
    SmallVector<StoreInst*> stores;  // neighbors, next to one another
    auto are_neighbors = [&](StoreInst& store) {
      if (!evolution) evolution = &analyses.getResult<ScalarEvolutionAnalysis>(function);
      int64_t bytes = static_cast<int64_t>(store.getDataLayout().getTypeStoreSize(store.getValueOperand()->getType()));
      return all_of(stores, [&](StoreInst* other) {
        if (other->getValueOperand()->getType() != store.getValueOperand()->getType()) return false;
        const auto* distance = dyn_cast<SCEVConstant>(
            evolution->getMinusSCEV(evolution->getSCEV(address_of(store)), evolution->getSCEV(address_of(*other))));
        return distance && distance->getAPInt().abs().sle(kMaxDistance) && distance->getAPInt().abs().sge(bytes);
      });
    };
    for (Instruction& instruction : make_early_inc_range(block)) {
      auto* store = dyn_cast<StoreInst>(&instruction);
      if (!store) {
        if (any_of(stores, [&](StoreInst* earlier) { return !can_move_after(*earlier, instruction); })) stores.clear();
        continue;
      }
      if (!store->isSimple() || (!stores.empty() && !are_neighbors(*store))) stores.clear();
      if (!store->isSimple()) continue;
      for (StoreInst* earlier : stores) earlier->moveBefore(store);
      stores.push_back(store);
    }
  }
}

}  // namespace kiln
