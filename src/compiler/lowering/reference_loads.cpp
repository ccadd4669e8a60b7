#include "compiler/lowering/reference_loads.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace kiln {

using namespace llvm;

bool mark_reference_loads(Function& function) {
  bool has_changed = false;
  for (Instruction& instruction : instructions(function)) {
    auto* load = dyn_cast<LoadInst>(&instruction);
    if (!load || !load->isSimple()) continue;
    auto* argument = dyn_cast<LoadInst>(load->getPointerOperand()->stripInBoundsConstantOffsets());
    if (argument && argument->hasMetadata(LLVMContext::MD_invariant_load) &&
        argument->hasMetadata(LLVMContext::MD_dereferenceable)) {
      has_changed |= !load->hasMetadata(LLVMContext::MD_invariant_load);
      load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(function.getContext(), {}));
    }
  }
  return has_changed;
}

}  // namespace kiln
