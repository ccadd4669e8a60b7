// Functions that the processor approximates (`__kiln_rsqrt`, device/engine/thread.h), in math modes other than safe.
// Each call also has the correctly rounded value as an operand. That value remains if no instruction replaces it: in
// safe mode, on the scalar engine, for uniform numbers.
//
// The other functions (device/math/approximate.h) choose between two implementations by `__kiln_approximates`, a
// constant of the target and the mode. Its branches go before anything is inlined, so that a kernel's code has no trace
// of them.
//
// Rejected: LLVM's own estimates, requested by flags on a root and a division. They give a NaN for 0 and infinity, but
// a body may compute the length of a vector that is 0 and multiply by it.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include "compiler/ir/vector_isa.h"

namespace kiln {

bool is_rsqrt(const llvm::Instruction& instruction);
bool is_rounded_rsqrt(const llvm::Instruction& instruction);

/// Replaces the remaining ones by the correctly rounded values.
void expand_approximations(llvm::Module& module);
void expand_rounded_rsqrt(llvm::Module& module);

/// Replaces `__kiln_approximates` by the constant, and removes the branches that depend on it. If it is false, no
/// instruction is used, and their calls go too.
void fold_approximations(llvm::Module& module, bool are_used);

/// For floats in whole registers; the processor has an estimate. One Newton step refines an estimate of 14 bits, two
/// terms of the series in the residual one of 11.5 bits: within 1.1 units in the last place over all floats. Subnormals
/// count as 0 where they do for the estimate.
llvm::Value* approximate_rsqrt(llvm::Value* values, const VectorIsa& vector_isa, llvm::IRBuilder<>& builder);

/// 1 / sqrt(values), correctly rounded, from an estimate that is right to 12 bits at least, of subnormal numbers too:
/// of 0, infinity and NaN it is the value. Floats, or vectors of them.
///
/// One Newton step brings the estimate within one unit in the last place. The residual 1 - x y^2 is then known almost
/// exactly from two fma, and two terms of the series in it round correctly: for all floats, from any estimate within
/// six units as from one of 14 bits (tools/check_math.py). It takes a third of the time of a root and a quotient.
llvm::Value* round_rsqrt(llvm::Value* values, llvm::Value* estimate, llvm::IRBuilder<>& builder);

/// The same from the processor's estimate of 14 bits.
llvm::Value* round_rsqrt(llvm::Value* values, const VectorIsa& vector_isa, llvm::IRBuilder<>& builder);

}  // namespace kiln
