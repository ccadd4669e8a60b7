// Inlines everything that a function calls.
#pragma once

#include <llvm/IR/Module.h>

#include "compiler/ir/pass_runner.h"

namespace kiln {

/// Marks what is to be inlined into `root`, and drops what C++ guarantees of references and arguments and a kernel's
/// accesses may violate.
void prepare_inlining(llvm::Module& module, llvm::StringRef root);

/// Inlines what is marked, without folding loads of the kernel's constants.
void inline_marked(llvm::Module& module, PassRunner& runner);

/// Inlines every call into the function named `root` and into functions whose address Kiln's device library takes (they
/// combine the values of two lanes and stay functions). All other functions are then removed. Recursion must have been
/// rejected before.
void inline_all(llvm::Module& module, llvm::StringRef root);

}  // namespace kiln
