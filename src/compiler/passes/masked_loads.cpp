#include "compiler/passes/masked_loads.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

#include "compiler/passes/bounds_guards.h"

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

// The load that `masked` takes its value from if its pointer is one that a guard chose.
LoadInst* guarded_load(SelectInst& masked) {
  if (!masked.getCondition()->getType()->isIntegerTy(1)) return nullptr;
  if (!match(masked.getFalseValue(), m_Zero()) && !match(masked.getFalseValue(), m_PosZeroFP())) return nullptr;
  auto* load = dyn_cast<LoadInst>(masked.getTrueValue());
  if (!load || !load->isSimple() || !load->hasOneUse()) return nullptr;
  auto* guard = dyn_cast<SelectInst>(load->getPointerOperand());
  if (!guard || !guard->hasOneUse() || !is_zeros(guard->getFalseValue())) return nullptr;
  return load;
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
    if (!dominators.dominates(masked->getCondition(), load)) continue;
    guard->moveBefore(load);
    IRBuilder<> builder(guard);
    guard->setCondition(builder.CreateAnd(masked->getCondition(), guard->getCondition()));
    masked->replaceAllUsesWith(load);
    masked->eraseFromParent();
  }
}

}  // namespace kiln
