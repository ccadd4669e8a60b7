// Motion of instructions within a block.
#pragma once

#include <llvm/IR/Instruction.h>

namespace kiln {

/// Moves the instructions that compute `value`, as far as they are in the block of `place`, before `place`. Returns
/// false if one of them cannot be moved; some of its operands may have been moved by then, which changes no result.
bool move_before(llvm::Value* value, llvm::Instruction& place, unsigned depth = 0);

}  // namespace kiln
