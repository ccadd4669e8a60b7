// Guards that compare a 32-bit index instead of a 64-bit offset.
//
// A guard compares the offset of an access in bytes with the end of its argument, in 64 bits. On a GPU that is two
// comparisons, and because the guard needs the offset, the address is not one multiply-add but a product and a sum of
// two registers each: four instructions more than without a guard. If the offset is `index * 2^k + c` with an index of
// 32 bits, the same is known from `index < ceil((end - c) / 2^k)`, whose right side is computed once, for all threads:
// one instruction.
//
// The comparison is exact. An index that was sign-extended is below 2^31 if it is not negative, so that the limit may
// be clamped to 2^31. One that was zero-extended is always in bounds if the limit is above 2^32 - 1.
//
// A comparison of a sum with a constant, as the guard of a variable, compares what the constant is added to. Accesses
// of a tile at constant distances, as unrolling makes them, mostly have one guard then.
//
// Complexity: linear; limits are shared by all guards of the same end, k and c.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln {

/// `kernel` is a kernel's entry whose guards compare with ends of arguments, which are loads of parameters.
bool compare_indices_in_guards(llvm::Function& kernel);

}  // namespace kiln
