// Stores and atomics through a kernel's inputs.
//
// An input is `const`, but a cast removes that, and on a Mac the write takes effect. Kiln either does the same (an
// input that is writable) or rejects the body at the line of the write; a guard that drops it would silently give wrong
// values.
//
// Values that carry an input's address are followed forward from the argument: through pointer arithmetic, casts,
// integers, selects and phis, and through private and threadgroup memory, if a pointer may be loaded from the offset
// that it was stored at. Each store, atomic or memory intrinsic whose address is among them is a write. A pointer that
// may be an input or an output counts as the input: a run-time check would have to drop the write.
//
// Rejected: following each store's address backward, as guards do, which visits long chains of phis once for each
// store; const-correctness in Clang's AST, which templates and integers defeat.
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

struct ReachableInputStores {
  std::unique_ptr<llvm::Module> optimized;  // what `stores` points into
  std::vector<InputStore> stores;
};

/// The same without stores that optimization proves unreachable, whatever the shapes. `body` is not changed: it is
/// copied with its module and optimized.
ReachableInputStores find_reachable_input_stores(llvm::Function& body, const KernelUnit& unit);

}  // namespace kiln
