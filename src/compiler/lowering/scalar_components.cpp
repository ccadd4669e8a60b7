#include "compiler/lowering/scalar_components.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Scalar/Scalarizer.h>

#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/lowering/vector_bitcasts.h"

namespace kiln {
namespace {

using namespace llvm;

// A component's address is a constant distance behind the guarded address of its vector. The guard is the component's
// own, so that it is seen to be one: its address, or what stands for it, which is large enough for the vector.
void guard_components(Function& function) {
  for (Instruction& instruction : instructions(function)) {
    Value* pointer = getLoadStorePointerOperand(&instruction);
    auto* address = pointer ? dyn_cast<GetElementPtrInst>(pointer) : nullptr;
    auto* guard =
        address && address->hasAllConstantIndices() ? dyn_cast<SelectInst>(address->getPointerOperand()) : nullptr;
    if (!guard || (!is_zeros(guard->getFalseValue()) && !is_sink(guard->getFalseValue()))) continue;
    IRBuilder<> builder(address);
    Value* own = builder.CreateGEP(address->getSourceElementType(), guard->getTrueValue(),
                                   SmallVector<Value*>(address->indices()));
    instruction.replaceUsesOfWith(pointer, builder.CreateSelect(guard->getCondition(), own, guard->getFalseValue()));
    // Its other uses may be none that can be guarded.
    if (address->use_empty()) address->eraseFromParent();
  }
}

}  // namespace

void split_into_components(llvm::Function& function, PassRunner& runner) {
  spell_out_bitcasts(function);
  runner.invalidate(function);
  llvm::ScalarizerPassOptions options;
  options.ScalarizeLoadStore = true;
  options.ScalarizeVariableInsertExtract = true;
  options.ScalarizeMinBits = 0;
  runner.run_pass(llvm::ScalarizerPass(options), function);
  guard_components(function);
}

}  // namespace kiln
