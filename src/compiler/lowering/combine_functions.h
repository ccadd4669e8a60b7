// Functions by which reductions and scans combine the values of two lanes; collectives carry values as 64 bits.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// Simplifies the function before it is inlined.
void simplify_combining(llvm::Function& combine);

/// Whether a simplified function gives the same result for its arguments in either order; all NaNs count as equal.
/// False if that is not evident.
bool is_commutative(const llvm::Function& combine);

/// The integer type of the bits that the function returns and reads. (A value may have fewer: it may have been a small
/// number before.)
llvm::Type* combining_type(llvm::Function& combine);

/// The value in its narrowest integer type.
llvm::Value* narrow(llvm::Value* value);

}  // namespace kiln
