// A processor's vector instructions, as passes see them: what they can do, not what they are called.
//
// Passes of the SIMD engine choose code by properties of the processor: how many registers there are, whether masks
// have registers of their own. One function of the room of a processor describes each instruction set once
// (x86/instruction_sets.h), and the description is passed to all that needs it. So a pass names no instruction set, and
// another processor gets a description, not branches in passes.
//
// Some instructions have no operation of LLVM's for all targets. The description has a function that emits each of
// them, which is null where the processor has none.
//
// Rejected: TargetTransformInfo, which has the costs of LLVM's operations, but knows nothing of mask registers, tables
// and the precision of estimates. Pseudo-intrinsics that a late pass of the processor's room lowers: LLVM
// would know nothing of them meanwhile, while it folds and moves its own intrinsics.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace kiln {

struct VectorIsa {
  unsigned num_registers = 0;
  unsigned register_bytes = 0;

  /// Why the SIMD engine cannot use the processor; empty if it can.
  const char* refusal = "it has no vector registers";

  /// Masks are bits in registers of their own, which an integer's bits can become. So masks are cheap: loads and stores
  /// take them, and a comparison needs no vector as wide as the data that its result selects.
  bool has_mask_registers = false;
  /// Masked loads and stores of elements of 1 and 2 bytes, not only of 4 and 8.
  bool masks_small_elements = false;
  /// Masked gathers and scatters of elements of 4 and 8 bytes that are faster than a loop over lanes.
  bool has_gathers = false;
  /// Gathers also pay for parts of words and for few lanes.
  bool gathers_always_pay = false;
  bool has_scatters = false;
  /// A permutation takes elements of a register of 16 floats by the lowest four bits of each index, as from a table.
  bool has_table_of_16_floats = false;
  /// Whether `estimate_rsqrt` is right to 14 bits, also for subnormal numbers. Otherwise it is right to 11.5 bits, and
  /// subnormal numbers count as 0.
  bool estimates_rsqrt_to_14_bits = false;

  // ---- Instructions, for vectors of one register. Null: there is no such instruction.

  /// Of 32-bit integers: the elements at `indices`, which are variable, among those of `low` and then `high`.
  llvm::Value* (*permute_two_registers)(llvm::Value* low, llvm::Value* high, llvm::Value* indices,
                                        llvm::IRBuilderBase& builder) = nullptr;
  /// The same of one register. Indices count modulo its elements.
  llvm::Value* (*permute_register)(llvm::Value* values, llvm::Value* indices, llvm::IRBuilderBase& builder) = nullptr;
  /// The elements, of 4 or 8 bytes, that the mask selects, in their order; then any values.
  llvm::Value* (*compress)(llvm::Value* values, llvm::Value* mask, llvm::IRBuilderBase& builder) = nullptr;
  /// An estimate of 1 / sqrt(x) for floats. It is the value itself for 0 and infinity.
  llvm::Value* (*estimate_rsqrt)(llvm::Value* values, llvm::IRBuilderBase& builder) = nullptr;
  /// Floats times two to the power of `exponents`, floats that are whole numbers, rounded once.
  llvm::Value* (*scale)(llvm::Value* values, llvm::Value* exponents, llvm::IRBuilderBase& builder) = nullptr;

  /// Whether lanes load elements of 1, 2, 4 or 8 bytes at any index together: narrow ones as parts of words.
  bool loads_by_index(uint64_t bytes) const { return has_gathers && bytes <= 8 && (bytes >= 4 || gathers_always_pay); }
  bool stores_by_index(uint64_t bytes) const { return has_scatters && (bytes == 4 || bytes == 8); }

  /// Elements of a register, of so many bytes each.
  unsigned num_elements(uint64_t bytes) const { return static_cast<unsigned>(register_bytes / bytes); }
  /// Numbers of 32 bits in a register.
  unsigned num_words() const { return num_elements(sizeof(uint32_t)); }
};

}  // namespace kiln
