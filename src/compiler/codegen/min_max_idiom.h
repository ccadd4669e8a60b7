// The min/max idiom of floats, in which a NaN loses to a number: `a < b || a != a ? b : a`.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

/// For processors with instructions for `a < b ? b : a`, in which `b` wins where one is a NaN. This pass makes the NaN
/// test a select of its own, so that the comparison does not wait for it. It drops the test where `a` is never a NaN,
/// as in a loop that begins with a number.
void match_min_max(llvm::Module& module);

}  // namespace kiln
