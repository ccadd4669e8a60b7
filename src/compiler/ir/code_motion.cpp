#include "compiler/ir/code_motion.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Instructions.h>

namespace kiln {

using namespace llvm;

bool move_before(Value* value, Instruction& place, unsigned depth) {
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || instruction->getParent() != place.getParent() || instruction->comesBefore(&place)) return true;
  if (depth > 12 || instruction == &place || isa<PHINode>(instruction) || instruction->mayReadOrWriteMemory() ||
      !isSafeToSpeculativelyExecute(instruction))
    return false;
  for (Value* operand : instruction->operands())
    if (!move_before(operand, place, depth + 1)) return false;
  instruction->moveBefore(&place);
  return true;
}

}  // namespace kiln
