// Stores and atomics through a kernel's inputs.
//
// An input is `const`, but a cast takes that away, and on a Mac the write takes effect. Kiln either does the same (an
// input that is writable) or refuses the body at the line of the write; a guard that drops it would give wrong values
// without a word.
//
// Values that carry an input's address are followed forward from the argument: through pointer arithmetic, casts,
// integers, selects and phis, and through private and threadgroup memory, where a pointer is stored at an offset and
// loaded from an offset that may be the same one. Each store, atomic or memory intrinsic whose address is among them is
// a write. A pointer that may be an input or an output counts as the input: it would be a question for run time, and
// the answer a write that is dropped.
//
// Rejected: following each store's address backward, as guards do, which visits long chains of phis once for each
// store; and const-correctness in Clang's tree, which templates and integers end.
//
// Each value is visited once for each input that it may come from: linear in the code.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Instruction.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/kernel_unit.h"

namespace kiln {

struct InputStore {
  llvm::Instruction* access = nullptr;
  uint32_t parameter = 0;  // of the unit
};

/// In program order, for each parameter that is not written (KernelParameter::is_written). `body` has three arguments
/// for each of the unit's parameters (kBodyFunction), everything inlined, and its allocas promoted.
std::vector<InputStore> find_input_stores(llvm::Function& body, const KernelUnit& unit);

/// The same without those that optimization removes because they are never reached, whatever the shapes. `body`, which
/// stays as it is, is copied with its module and optimized; what is returned points into the copy, which is
/// `optimized`.
std::vector<InputStore> find_reachable_input_stores(llvm::Function& body, const KernelUnit& unit,
                                                    std::unique_ptr<llvm::Module>& optimized);

}  // namespace kiln
