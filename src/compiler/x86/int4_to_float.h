// Conversion of packed integers of a few bits (int4 and narrower), as in quantized weights, to floats.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

/// float((word >> s) & 15) is a shift, an `and` and a conversion. An AVX-512 permutation selects one of 16 floats by
/// the lowest four bits of a word, which replaces the latter two. Likewise for fewer bits.
void convert_int4_by_table(llvm::Module& module);

}  // namespace kiln
