// Bounds checks (guards) of accesses through a kernel's arguments (docs/language.md 5.1).
//
// An access outside the bytes that belong to the argument does not touch memory: a load gives zero, a store or an
// atomic does nothing. A parameter that is not written (KernelParameter::is_written) takes no stores; those that can be
// traced to it have been rejected before (input_stores.h).
//
// A pointer is traced from the access back to its argument: through arithmetic, casts, integers, freeze, and through
// selects and phis, where the bounds are selected along with the pointer. Constant tables are guarded like inputs. A
// pointer loaded from memory (an array of pointers with a dynamic index) may be any whose address was stored to memory;
// its access must lie wholly inside one of those. docs/design/meaning.md describes what remains.
//
// A parameter that is a batch of arrays (KernelParameter::is_batch) has the extent of one of them. The body accesses an
// array through a pointer made by `__kiln_element`, which is an origin like an argument, so that no access of an
// element of the batch reaches its neighbor.
//
// A guard is one unsigned comparison of the offset with a launch-invariant number. A load or store that fails it is
// redirected to memory of Kiln's own, so that no branch is needed; atomics branch.
#pragma once

#include <llvm/IR/Function.h>

#include <cstdint>
#include <span>

#include "core/kernel_unit.h"

namespace kiln {

/// `body` has three arguments for each of the parameters (kBodyFunction); its allocas are promoted.
/// `compares_with_launch`: known sizes prove accesses, and what is not proved is compared with the size that the launch
/// says. LLVM would divide a constant by the element's size and compare the index, which the SIMD engine would not
/// recognize as the address's.
void insert_bounds_guards(llvm::Function& body, const KernelUnit& unit, std::span<const KernelParameter> parameters,
                          bool compares_with_launch = false);

/// Replaces the pointers to arrays of a batch by arithmetic, after describe_accesses() and insert_bounds_guards().
void expand_elements(llvm::Module& module);

/// Annotates accesses through arguments for the optimiser with what holds whatever a body casts pointers to: they are
/// aligned like the arguments' elements, and memory that is not written is invariant during a launch.
void describe_accesses(llvm::Function& body, const KernelUnit& unit, std::span<const KernelParameter> parameters);

}  // namespace kiln
