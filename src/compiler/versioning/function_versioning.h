// Function versioning: a fast version of a simdgroup in which every access is consecutive and in bounds, as most are
// except at array borders.
//
// In code without loops nothing shows beforehand that an access is consecutive (loop_versioning.h), and an x-line of
// threads may be too short for a check per line to pay off. Here the scope of versioning (versioning.h) is one
// simdgroup. Accesses to one array at known byte distances, as in a stencil, are in bounds if the lowest and the
// highest are. The remaining code has no branches. Every other simdgroup runs the code that checks each access.
//
// Most bodies begin with `if (x >= width || y >= height) return;`. Everything after that is made under a condition. So
// the fast version requires that no lane leaves there, if that can be asked for before the body has begun: all lanes go
// on, and no mask is left. The simdgroups at a grid's right end run the other version. Only exits that do nothing are
// looked at, and as long as each follows the one before.
//
// In a long body the vector code that checks each access took two thirds of the time of code generation, and hardly
// ever runs. The fast version then runs simdgroups with fewer threads too, by masks on its stores, and only simdgroups
// with an access out of bounds are left, which are those at the ends of arrays. They run the scalar engine's code, one
// thread after the other. Such a simdgroup takes up to eight times as long.
//
// Rejected: scalar code for the rest of each row as well, which would be most of a narrow grid; no fast version, which
// takes 1.06 times as long to run with mask registers, and 1.3 times without; a masked store of every simdgroup, which
// without mask registers keeps the values of all lanes live to the end (1.15 times).
#pragma once

#include <llvm/IR/PassManager.h>

#include "compiler/ir/vector_isa.h"

namespace kiln {

/// From a function that runs a simdgroup of a row (workgroup/thread_coarsening.h), makes a version for full simdgroups
/// with the same parameters that returns `bool`: true if all checks at its start take their likely branch. Otherwise it
/// has done nothing and returns false. Null if fewer than `fewest` checks can be hoisted to the start.
llvm::Function* make_fast_version(llvm::Function& group, llvm::FunctionAnalysisManager& analyses, unsigned fewest);

/// Lets the fast version run simdgroups with fewer threads than 32, the number in its last parameter: all lanes
/// compute, and stores have a mask. What it checks at its start holds for all 32 lanes then. Returns false, with the
/// same code, if a check may fail in many simdgroups, since it is not one of bounds alone, or if lanes without a thread
/// could be noticed: by a loop that they do not end, or by writes without masks.
bool take_fewer_threads(llvm::Function& fast, const VectorIsa& vector_isa);

}  // namespace kiln
