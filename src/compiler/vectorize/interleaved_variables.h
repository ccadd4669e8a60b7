// Interleaves the lanes' private arrays: element by element the 32 lanes' elements lie side by side.
//
// Problem: an array whose indices are not known when the kernel is compiled stays in memory. With each lane's array as
// a whole, `w[k % 16]` is a gather even where all lanes have the same index, as loop counters are.
//
// Idea: element e of lane l is at (e * 32 + l) elements. An access by an index that is the same in all lanes is one of
// consecutive elements then, and any other is the gather that it was. Only addresses change, each offset by a factor of
// 32, so this is done in one thread's code, before it is widened: the array becomes a variable of the simdgroup, and a
// lane's base is its own element.
//
// An array must be accessed in elements of one size, by addresses that are computed from it alone. Others stay.
//
// Rejected: unrolling every loop until indices are constants. It removes the array, at the price of code that grows
// with the product of the loops' lengths, and some indices never become constants.
//
// Complexity: linear in the variables' uses.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Returns whether the function has changed.
bool interleave_variables(llvm::Function& function);

}  // namespace kiln
