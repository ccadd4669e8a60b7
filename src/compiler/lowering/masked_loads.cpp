#include "compiler/lowering/masked_loads.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

#include "compiler/ir/guard_zeros.h"

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

// The load that `masked` takes its value from, if a guard selects the load's pointer.
LoadInst* guarded_load(SelectInst& masked) {
  if (!masked.getCondition()->getType()->isIntegerTy(1)) return nullptr;
  if (!match(masked.getFalseValue(), m_Zero()) && !match(masked.getFalseValue(), m_PosZeroFP())) return nullptr;
  auto* load = dyn_cast<LoadInst>(masked.getTrueValue());
  if (!load || !load->isSimple() || !load->hasOneUse()) return nullptr;
  auto* guard = dyn_cast<SelectInst>(load->getPointerOperand());
  if (!guard || !guard->hasOneUse() || !is_zeros(guard->getFalseValue())) return nullptr;
  return load;
}

// Moves a condition that a body computes after the load before it, if it is short arithmetic that does not depend on
// the load.
bool move_before(Value* condition, Instruction* load, const DominatorTree& dominators) {
  constexpr size_t kMost = 16;
  SetVector<Instruction*> moved;  // users first
  SmallVector<Value*> work{condition};
  for (size_t steps = 0; !work.empty(); ++steps) {
    if (steps > 4 * kMost) return false;
    Value* value = work.pop_back_val();
    if (dominators.dominates(value, load)) continue;
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || isa<PHINode>(instruction) || instruction->mayReadOrWriteMemory() ||
        !isSafeToSpeculativelyExecute(instruction))
      return false;
    moved.remove(instruction);  // after all its users
    moved.insert(instruction);
    if (moved.size() > kMost) return false;
    work.append(instruction->op_begin(), instruction->op_end());
  }
  for (Instruction* instruction : reverse(moved)) {
    instruction->dropPoisonGeneratingAnnotations();
    instruction->moveBefore(load);
  }
  return true;
}

}  // namespace

void mask_at_loads(Function& function) {
  SmallVector<SelectInst*> found;
  for (Instruction& instruction : instructions(function))
    if (auto* masked = dyn_cast<SelectInst>(&instruction); masked && guarded_load(*masked)) found.push_back(masked);
  if (found.empty()) return;
  DominatorTree dominators(function);
  for (SelectInst* masked : found) {
    LoadInst* load = guarded_load(*masked);
    auto* guard = cast<SelectInst>(load->getPointerOperand());
    if (!move_before(masked->getCondition(), load, dominators)) continue;
    guard->moveBefore(load);
    IRBuilder<> builder(guard);
    guard->setCondition(builder.CreateAnd(masked->getCondition(), guard->getCondition()));
    masked->replaceAllUsesWith(load);
    masked->eraseFromParent();
  }
}

}  // namespace kiln
