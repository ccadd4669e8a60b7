// Lane-to-register layout of values whose lane order is unobservable, such as operands of a reduction.
//
// Loads of `x[4 * i + k]` for four `k` yield a 4 x 4 block of numbers to transpose for every four lanes. Two-operand
// shuffles within 128-bit parts transpose registers at one instruction each, but they leave consecutive lanes in
// different parts. Restoring the order of lanes takes permutations across parts, which have half the throughput. Values
// that are computed lane by lane and then summed over all lanes need no order. The sum only has to know which number
// belongs to which lane, since it adds in the order of lanes.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Value.h>

#include <optional>

namespace kiln {

/// Bits of a lane index.
inline constexpr unsigned kLaneBits = 5;

/// For each bit of an element's index in its register, and of its register's index, lowest first: the bit of the lane
/// index that it equals.
struct LaneLayout {
  llvm::SmallVector<unsigned, 4> elements, registers;
};

/// The values of a simdgroup's lanes, in registers of one type.
struct LanesInRegisters {
  llvm::SmallVector<llvm::Value*, 8> registers;
  LaneLayout layout;
};

/// An element of a vector that is not a shuffle of others.
struct VectorElement {
  llvm::Value* vector;
  unsigned index;

  bool operator==(const VectorElement&) const = default;
};

/// The element's origin before all shuffles; nullopt where it is poison.
std::optional<VectorElement> source_of(llvm::Value* vector, unsigned index);

/// Whether a vector of 32 numbers of 32 bits is computed from 4 x 4 transposes that take fewer instructions in
/// transposed order. Its operands must have no users but each other and `users`, which will be deleted. Never true for
/// registers of 8: there the loads already put 128-bit parts in order (widener_strided.cpp).
bool has_transposed_order(llvm::Value* lanes, unsigned width, llvm::ArrayRef<const llvm::User*> users);

/// The vector as registers of `width` numbers, 8 or 16. They hold consecutive lanes or, `in_transposes`, lanes in
/// transposed order.
LanesInRegisters lay_out(llvm::Value* lanes, unsigned width, bool in_transposes, llvm::IRBuilderBase& builder);

}  // namespace kiln
