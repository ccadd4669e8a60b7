// Tables of constants whose elements are vectors of three.
//
// Such a vector takes the space of four elements, but LLVM's PTX printer writes three. The following elements then come
// too early, and the table ends in zeros. This pass turns a table with such vectors into bytes, which are printed as
// they are.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

/// Must run before PTX is written.
void write_padding_as_bytes(llvm::Module& module);

}  // namespace kiln
