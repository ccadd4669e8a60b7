// Which lane's number lies where in a simdgroup's registers, where nobody asks for lanes by their numbers.
//
// `x[4 * i + k]` for four `k` is a square of four by four numbers for each four lanes, to be turned. Registers are
// turned within their parts of 128 bits by one instruction each that takes two operands, but lanes that follow one
// another then lie in different parts. Putting them in order takes permutations across parts, of which a processor does
// half as many at a time. What is computed lane by lane and then added up over all lanes needs no order: the sum only
// has to know which number is whose, since it adds up in the order of lanes.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Value.h>

#include <optional>

namespace kiln {

/// Of a lane's number.
inline constexpr unsigned kLaneBits = 5;

/// Bits of a number's place from the lowest up, each given as that of its lane's number which it is: of its place in a
/// register, and of its register's.
struct LaneLayout {
  llvm::SmallVector<unsigned, 4> elements, registers;
};

/// What a simdgroup's lanes have, in registers of one type.
struct LanesInRegisters {
  llvm::SmallVector<llvm::Value*, 8> registers;
  LaneLayout layout;
};

/// An element of a vector that is no permutation of others.
struct VectorElement {
  llvm::Value* vector;
  unsigned index;

  bool operator==(const VectorElement&) const = default;
};

/// Where an element comes from, before permutations; nothing where it is poison.
std::optional<VectorElement> source_of(llvm::Value* vector, unsigned index);

/// Whether a vector of 32 numbers of 32 bits is computed from squares that take fewer instructions in their own order,
/// as nobody but `users`, which will be gone, uses what it is computed from. With registers of 8 it never is: there
/// loads put parts of 128 bits where they belong (widener_memory.cpp).
bool is_made_of_transposes(llvm::Value* lanes, unsigned width, llvm::ArrayRef<const llvm::User*> users);

/// As registers of `width` numbers, 8 or 16: lanes that follow one another, or, if it is made of squares, in their
/// order.
LanesInRegisters lay_out(llvm::Value* lanes, unsigned width, bool in_transposes, llvm::IRBuilderBase& builder);

}  // namespace kiln
