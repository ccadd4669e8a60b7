// Function versioning: a fast version of a simdgroup in which every access is consecutive and in bounds, as most are
// except at array borders.
//
// In code without loops nothing shows beforehand that an access is consecutive (loop_versioning.h), and an x-line of
// threads may be too short for a check per line to pay off. Here the scope of versioning (versioning.h) is one
// simdgroup. Accesses to one array at known byte distances, as in a stencil, are in bounds if the lowest and the
// highest are. The remaining code has no branches. Every other simdgroup runs the code that checks each access.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln {

/// From a function that runs a simdgroup of a row (workgroup/thread_coarsening.h), makes a version for full simdgroups
/// with the same parameters that returns `bool`: true if all checks at its start take their likely branch. Otherwise it
/// has done nothing and returns false. Null if fewer than `fewest` checks can be hoisted to the start.
llvm::Function* make_fast_version(llvm::Function& group, llvm::FunctionAnalysisManager& analyses, unsigned fewest);

}  // namespace kiln
