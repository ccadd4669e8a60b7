// Tables of constants whose elements are vectors of three.
//
// Such a vector takes the room of four, and LLVM's printer of PTX writes three: what follows lies too early, and the
// table's end is zeros. So a table with such vectors becomes one of bytes, which are written as they are.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

/// Before PTX is written.
void spell_out_padding(llvm::Module& module);

}  // namespace kiln
