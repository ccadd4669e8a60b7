// Strides: the difference between the values of adjacent lanes, of numbers and of addresses.
//
// A stride assumes that nothing wraps that is narrower than an address, and that all lanes are on the side of each
// piece in the value. Wrapping (widener_wrapping.h) says where that needs no check, AddressChecks (widener_checks.h)
// emits one.
//
// Strides and pieces are one analysis, since they define one another: a piece is a select whose side has a stride, and
// gives the select that stride.
//
// It reads the thread's code and changes nothing. Results are kept, so that a value is visited once, but for loop phis:
// a wrong assumption about one drops all strides.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/InstrTypes.h>

#include <cstdint>
#include <optional>

#include "compiler/analysis/structured_flow.h"

namespace kiln::widening {

using namespace llvm;

// A number with a stride compared with a uniform one: all lanes have `value`, or any one value.
struct LaneComparison {
  CmpInst::Predicate predicate;
  Value *number, *limit;
  std::optional<bool> value;
};

// What has a stride in simdgroups that are no border's.
struct Piece {
  int64_t stride = 0;
  Value* side = nullptr;        // what all lanes have then; null: of a remainder, or the side that the first lane has
  Value* subtracted = nullptr;  // uniform, from the side
  Value* dividend = nullptr;    // of a remainder: its quotient is uniform
  SmallVector<LaneComparison, 2> comparisons;
};

/// Whether the piece's instruction is a remainder, and no mask of low bits.
bool is_remainder(const Instruction& instruction);

class Strides {
 public:
  Strides(const StructuredFlow& flow, const LoopInfo& loops, const DataLayout& layout)
      : flow_(flow), loops_(loops), layout_(layout) {}

  /// In the value's unit; 0 for uniform values.
  std::optional<int64_t> stride_of(Value* value);

  /// The number of elements from one lane's to the next one's, if this is worth other accesses than lane by lane: 1; 2,
  /// 3, 4, 8 or 16 words, as in threads that process four elements each; as many narrower elements, if they fill 16
  /// bytes at most. Otherwise 0.
  uint64_t element_stride(Value* pointer, uint64_t bytes);

  /// The number of elements of up to 4 bytes between lanes that each walk a row of their own: what element_stride()
  /// does not serve. Otherwise 0.
  uint64_t row_stride(Value* pointer, uint64_t bytes);

  /// What makes a stride of the instruction's result, if it is a piece.
  std::optional<Piece> piece_of(Instruction& instruction);
  /// The pieces on which the value, as an address is computed from it, depends.
  SmallVector<Instruction*> pieces_in(Value* value);
  bool has_piece(Value* value) { return !pieces_in(value).empty(); }

  /// Whether a number narrower than an address is subtracted from a divergent value, as in `x[i - 1]`.
  bool has_negative_offset(Value* value) const;

 private:
  std::optional<int64_t> stride_of_result(Value* value);
  std::optional<Piece> find_piece(Instruction& instruction);
  bool add_lane_comparisons(Value* condition, std::optional<bool> value, SmallVectorImpl<LaneComparison>& comparisons,
                            unsigned depth = 0);
  bool add_lane_comparison(CmpInst::Predicate predicate, Value* number, Value* limit, std::optional<bool> value,
                           SmallVectorImpl<LaneComparison>& comparisons);

  const StructuredFlow& flow_;
  const LoopInfo& loops_;
  const DataLayout& layout_;
  DenseMap<Value*, std::optional<int64_t>> strides_;
  DenseMap<Instruction*, std::optional<Piece>> pieces_;
};

}  // namespace kiln::widening
