// Numbers of a few bits, several in a word, that become floats, as quantised weights do.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

/// float((word >> s) & 15) is a shift, an `and` and a conversion. A permutation of AVX-512 takes one of 16 floats by
/// the lowest four bits of a word: it does what the latter two do. Likewise for fewer bits.
void convert_int4_by_table(llvm::Module& module);

}  // namespace kiln
