// Gives arithmetic that is undefined in C++ a defined result (docs/language.md 4.3), the same on every target:
//
//   x / 0 = x, x % 0 = 0                       the divisor counts as 1
//   MIN / -1 = MIN, MIN % -1 = 0               likewise
//   x << n, x >> n                             n counts modulo the width
//   conversion of a float that does not fit    the nearest value that fits; 0 for a NaN
//   signed overflow                            wraps
//   values never written, missing returns      zero; the function returns
//
// The pass must run before anything that exploits undefined behaviour, that is, before every optimisation.
#pragma once

#include <llvm/IR/Module.h>

namespace kiln {

void define_arithmetic(llvm::Module& module);

}  // namespace kiln
