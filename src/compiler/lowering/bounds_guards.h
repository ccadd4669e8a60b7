// Guards on accesses through a kernel's arguments (docs/language.md 5.1).
//
// An access outside the bytes that belong to the argument does not touch memory: a load gives zero, a store or an
// atomic does nothing. A parameter that is not written (KernelParameter::is_written) takes no stores; those that can be
// followed to it are errors before (input_stores.h).
//
// A pointer is followed from the access back to the argument that it came from: through arithmetic, casts, integers,
// freeze, and through selections and loops, where the bounds are selected along with the pointer. Constant tables are
// guarded like inputs. A pointer that was read from memory (an array of pointers with a dynamic index) may be any whose
// address got into memory; its access must lie wholly inside one of those. docs/design/meaning.md says what is left.
//
// A guard is a single unsigned comparison of the offset with a number that is the same throughout the launch. A load
// or store that is not allowed goes to memory of Kiln's own, so that no branch is needed; atomics branch.
#pragma once

#include <llvm/IR/Function.h>

#include <cstdint>
#include <span>

#include "core/kernel_unit.h"

namespace kiln {

/// `body` has three arguments for each of the parameters (kBodyFunction); its allocas are promoted.
void insert_bounds_guards(llvm::Function& body, const KernelUnit& unit, std::span<const KernelParameter> parameters);

/// Tells the optimiser of accesses through arguments what holds whatever a body casts pointers to: they are aligned
/// like the arguments' elements, and what is not written does not change while a launch runs.
void describe_accesses(llvm::Function& body, const KernelUnit& unit, std::span<const KernelParameter> parameters);

}  // namespace kiln
