// Motion of instructions within a block.
#pragma once

#include <llvm/IR/Instruction.h>

namespace kiln {

/// Moves the instructions of the block of `place` that compute `value` before `place`. False where one of them cannot
/// be moved; some of its operands may have been moved then, which changes no result.
bool move_before(llvm::Value* value, llvm::Instruction& place, unsigned depth = 0);

}  // namespace kiln
