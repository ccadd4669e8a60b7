// Switches that only choose among values become selects.
//
//   switch (base) {                    code = base == 'T' ? 3 : base == 'G' ? 2 : base == 'C' ? 1 : 0
//     case 'C': code = 1; break;
//     case 'G': code = 2; break;
//     case 'T': code = 3; break;
//     default: code = 0;
//   }
//
// Problem: lanes take different cases, as a rule. A switch is then a tree of comparisons and masks, and blocks between
// which values are merged, in each of which almost nothing is computed; and a loop around it has too many blocks to be
// unrolled.
//
// Idea: what few instructions the cases have is computed for all lanes, and a comparison with each case selects.
//
// Rejected: a table of the results, as SimplifyCFG makes it. It would be gathered from.
#pragma once

#include <llvm/IR/Function.h>

#include "compiler/analysis/divergence.h"

namespace kiln {

/// Switches on divergent conditions with at most 16 cases and four results, whose blocks have no effects and at most 16
/// cheap instructions together. One that has another in a case stays, since blocks are merged afterwards. Linear in the
/// code. Returns whether there was one.
bool select_by_cases(llvm::Function& function, const Divergence& divergence);

}  // namespace kiln
