// The smaller and the larger of two floats, of which a NaN is neither: `a < b || a != a ? b : a`.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

/// x86 has instructions for `a < b ? b : a`. Makes what is more than that a choice of its own, so that its comparison
/// does not wait for the other; and leaves it out where `a` is no NaN, as in a loop that begins with a number.
void match_min_max(llvm::Module& module);

}  // namespace kiln
