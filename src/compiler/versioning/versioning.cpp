#include "compiler/versioning/versioning.h"

#include <llvm/IR/Constants.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "compiler/ir/likely.h"

namespace kiln {

using namespace llvm;

// Whether the condition holds on the likely edge.
static bool likely_value(const BranchInst& check) { return *likely_successor(check) == 0; }

bool VersioningScope::version(ArrayRef<BranchInst*> checks) {
  SmallVector<BranchInst*> hoisted;
  for (BranchInst* check : checks)
    if (require(*check, likely_value(*check)))
      hoisted.push_back(check);
    else if (!may_keep(*check))
      return false;
  if (!is_enough(hoisted.size())) return false;
  copy();
  select(expand());
  for (BranchInst* check : hoisted)
    in_fast_copy(*check).setCondition(ConstantInt::getBool(check->getContext(), likely_value(*check)));
  return true;
}

BranchInst* check_of(BasicBlock& block) {
  auto* branch = dyn_cast<BranchInst>(block.getTerminator());
  return branch && likely_successor(*branch) ? branch : nullptr;
}

SmallVector<BranchInst*> checks_of(Function& function) {
  SmallVector<BranchInst*> checks;
  for (BasicBlock& block : function)
    if (BranchInst* check = check_of(block)) checks.push_back(check);
  return checks;
}

BranchInst& branch_at(Instruction& at, Value* condition, BasicBlock& slow) {
  BasicBlock* before = at.getParent();
  BasicBlock* fast = SplitBlock(before, &at);
  auto* branch = BranchInst::Create(fast, &slow, condition);
  ReplaceInstWithInst(before->getTerminator(), branch);
  return *branch;
}

}  // namespace kiln
