// Constant tables that lie in registers: lanes take elements by permutations, not by gathers.
//
//   constant uchar ALPHABET[65] = "ABC…";        the table's words are constants in two registers of 16 words;
//   text[i] = ALPHABET[v & 63];             ->   a permutation takes each lane's word, a shift its byte
//
// Problem: a table of digits, of steps, of codebook values is a few cache lines that are constant, and lanes look
// different elements up. A gather takes a load for each lane, a loop over lanes several instructions.
//
// Idea: a processor permutes a register's words by variable indices. Eight registers are still faster than a gather, or
// a loop; selects choose among them.
//
// Rejected: permutations of bytes, which most processors have for 16 bytes only, an index of four bits. Tables in
// arguments: what they hold would have to be loaded, and an element beyond them is zero.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Value.h>

#include <cstdint>
#include <optional>

#include "compiler/ir/vector_isa.h"

namespace kiln {

struct RegisterTable {
  llvm::SmallVector<uint32_t, 32> words;  // from index 0 on; zeros are added to whole registers
  llvm::Value* index;                     // an integer, of elements
};

/// The table in which an element of so many bytes (1, 2 or 4) is at the address, if the address is one of a constant
/// and registers can hold what indices from 0 on reach. Linear in the table's bytes, of which there are few.
std::optional<RegisterTable> register_table_of(const llvm::Value* address, uint64_t bytes,
                                               const llvm::DataLayout& layout, const VectorIsa& isa);

/// The words at the indices, which are vectors of whole registers of 32-bit integers. Indices beyond the table give any
/// value.
llvm::Value* words_of_table(const RegisterTable& table, llvm::Value* indices, const VectorIsa& isa,
                            llvm::IRBuilder<>& builder);

}  // namespace kiln
