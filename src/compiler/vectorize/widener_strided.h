// Vectors from and to memory that the lanes access as one range: consecutive elements, or every few elements, for which
// registers are permuted.
//
// Everything here is a fast path: the caller has checked the range (widener_checks.h). The number of instructions is
// linear in the registers that the range fills.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <vector>

#include "compiler/ir/vector_isa.h"
#include "compiler/vectorize/widener_lanes.h"

namespace kiln::widening {

/// A register of elements that are in any of several registers: one permutation of two registers for each of these.
Value* collected(ArrayRef<Value*> registers, ArrayRef<unsigned> elements, IRBuilder<>& builder);

/// The elements that a load of the lanes may read: so many from the address on, the last lane's last one included.
struct StridedRange {
  const LoadInst& load;
  Value* address;
  uint64_t num_elements;
};

class StridedAccesses {
 public:
  explicit StridedAccesses(Lanes& lanes) : isa_(lanes.vector_isa()), lanes_(lanes), layout_(lanes.layout()) {}

  /// Active lanes' elements; those of other lanes are not touched where the processor can mask such elements.
  Value* load_consecutive(LoadInst& load, Value* address, IRBuilder<>& builder);

  /// So many consecutive elements of those that the lanes load, at the point where the lanes' own loads would be.
  LoadInst* load_part(const LoadInst& load, unsigned count, Value* address, IRBuilder<>& builder,
                      Type* element = nullptr);

  /// Of every `step` elements from the address on, those at `indices`: a vector of the lanes for each index. `step` is
  /// one of Strides::element_stride(). `in_memory`, for words and powers of two, gets the registers in their order in
  /// memory.
  Values load_strided(const StridedRange& range, uint64_t step, ArrayRef<uint64_t> indices, IRBuilder<>& builder,
                      Values* in_memory = nullptr);

  /// Of `part` elements of each lane, from its address in `rows` on, those at `indices`: a vector of the lanes for
  /// each. A part is whole words, at most 16, and nothing beyond it is read.
  Values load_rows(const LoadInst& load, ArrayRef<Value*> rows, uint64_t part, ArrayRef<uint64_t> indices,
                   IRBuilder<>& builder);

  /// The reverse for all elements of parts that are multiples of four words: the elements' vectors.
  void store_rows(ArrayRef<Value*> members, ArrayRef<Value*> rows, Align alignment, IRBuilder<>& builder);

  /// A power of two, not more than a register has elements.
  void store_strided(Value* lanes, Value* address, uint64_t step, Align alignment, IRBuilder<>& builder);

  /// The reverse of load_strided(): registers that hold the interleaved members of all lanes.
  Values interleaved(ArrayRef<Value*> members, IRBuilder<>& builder);

 private:
  // So many elements of a type, as a rule the load's own, from an element of the range on. Elements beyond the range
  // have arbitrary values.
  Value* load_in(const StridedRange& range, uint64_t first, unsigned count, IRBuilder<>& builder,
                 Type* element = nullptr);
  Value* load_three(const LoadInst& load, Value* address, Type* word, IRBuilder<>& builder);
  Values load_odd(const StridedRange& range, uint64_t step, ArrayRef<uint64_t> indices, IRBuilder<>& builder);
  Values interleaved_odd(ArrayRef<Value*> members, IRBuilder<>& builder);
  bool shuffles_in_chunks(uint64_t bytes) const { return bytes < 4 || (bytes == 4 && !isa_.permute_two_registers); }
  Values load_collected(const StridedRange& range, uint64_t step, ArrayRef<uint64_t> indices, IRBuilder<>& builder);
  Values load_narrow(const StridedRange& range, uint64_t step, ArrayRef<uint64_t> indices, IRBuilder<>& builder);
  Values load_packed(const StridedRange& range, uint64_t step, ArrayRef<uint64_t> indices, IRBuilder<>& builder);
  Values load_words(const StridedRange& range, Type* element, uint64_t step, ArrayRef<uint64_t> indices,
                    IRBuilder<>& builder, Values* in_memory = nullptr);
  Values load_strided_words(const StridedRange& range, uint64_t step, ArrayRef<uint64_t> indices, IRBuilder<>& builder);

  const VectorIsa& isa_;
  Lanes& lanes_;
  const DataLayout& layout_;
};

}  // namespace kiln::widening
