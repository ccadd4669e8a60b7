// Addresses and offsets as sums: uniform values, and a few numbers that differ between lanes, each times a constant.
// Two values with the same terms have the same differences between lanes, whatever these are.
//
// The sum is one of 64 bits, in which nothing is lost. What is extended from fewer bits is a term as a whole, since it
// may wrap before.
//
// It reads the thread's code, changes nothing and keeps nothing. A value is followed through at most kMostSteps
// operations.
#pragma once

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <optional>

#include "compiler/analysis/structured_flow.h"

namespace kiln::widening {

using namespace llvm;

/// Members of structures, as of complex numbers, that are accessed together if the structures of lanes are consecutive
/// when the code runs. A second one takes as many permutations as the first.
inline constexpr unsigned kMostMembers = 2;

// A number that differs between lanes, as it counts in a sum.
struct LaneTerm {
  Value* number;
  std::optional<unsigned> extension;  // ZExt or SExt to 64 bits
  int64_t factor;                     // in elements

  bool operator==(const LaneTerm&) const = default;
};

// A number of 64 bits, or an address: uniform values plus terms, and a constant number of elements that belongs to
// them.
struct LaneSum {
  // Sums of several extended numbers are exact in 32 bits if each is smaller than so many bits, and their factors are
  // small.
  static constexpr unsigned kSmallBits = 20;

  Value* value;
  SmallVector<LaneTerm> terms;
  int64_t constant;
  bool is_quotient;  // so that it is tested for being the same in all lanes
  int64_t scale;     // by which all terms and the constant are to be multiplied

  // In any order.
  bool has_terms_of(ArrayRef<LaneTerm> others) const {
    return terms.size() == others.size() &&
           all_of(terms, [&](const LaneTerm& term) { return llvm::count(terms, term) == llvm::count(others, term); });
  }

  bool is_one_number() const { return terms.size() == 1 && terms[0].factor == 1; }

  // Whether it is computed in 32 bits, and only of small numbers.
  bool is_sum_of_small() const {
    return !is_one_number() && all_of(terms, [](const LaneTerm& term) {
      return term.extension && term.number->getType()->getIntegerBitWidth() <= 32;
    });
  }
};

class LaneSums {
 public:
  LaneSums(const StructuredFlow& flow, const DataLayout& layout) : flow_(flow), layout_(layout) {}

  /// Of a number of 64 bits or an address, in elements of so many bytes. Nothing if there are too many terms, or if the
  /// lanes cannot be consecutive, or so many elements apart: a power of two up to `most_scale`.
  std::optional<LaneSum> lane_sum_of(Value* value, uint64_t bytes, int64_t most_scale = 1) const;

  /// The same where there is one term: its factor is the sum's scale, any number from 1 to `most_scale`.
  std::optional<LaneSum> one_number_of(Value* value, uint64_t bytes, int64_t most_scale) const;

  /// By what a sum's terms are multiplied if this is done to it: 1 for additions. Nothing: it is a term itself.
  std::optional<int64_t> scale_of_step(const Instruction& step) const;

  /// Whether a number is computed from the thread's position, and not from what is in memory alone. The latter's lanes,
  /// as a list's or a graph's indices, are rarely consecutive.
  bool has_position(Value* number) const;

 private:
  std::optional<LaneSum> sum_of_terms(Value* value, uint64_t bytes) const;
  bool add_terms(Value* value, int64_t factor, LaneSum& sum, unsigned& steps) const;
  static void take_out_constants(LaneSum& sum);
  bool is_quotient(Value* number) const;

  const StructuredFlow& flow_;
  const DataLayout& layout_;
};

}  // namespace kiln::widening
