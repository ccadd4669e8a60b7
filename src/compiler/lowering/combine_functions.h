// The functions by which reductions and scans combine the values of two lanes, which travel as 64 bits.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// As short as it gets, before it is inlined.
void simplify_combining(llvm::Function& combine);

/// Whether a function that is as short as it gets gives the same for its arguments in either order; any NaN is as good
/// as any other. False where that is not plain.
bool is_commutative(const llvm::Function& combine);

/// The bits that the function gives, as many as it looks at. (Those of a value may be fewer: it may have been a small
/// number before.)
llvm::Type* combined_type(llvm::Function& combine);

/// A value in as few bits as it has.
llvm::Value* narrow(llvm::Value* value);

}  // namespace kiln
