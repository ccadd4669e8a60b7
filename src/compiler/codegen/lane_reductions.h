// Sums of a simdgroup's lanes that are wanted as one number, and what else combines all lanes in the same way.
//
// Adding lanes at distances 1, 2, … up takes a permutation and an addition of each register at each distance, though
// half of the lanes would do for the next one. Puts the sums of two registers into one instead, as long as there are
// two: of a simdgroup that is four registers 15 instructions rather than 27, and the same sums. Sums of several
// simdgroups, or of several values, are so added up together, eight of them in registers of 16 numbers with 48
// instructions rather than 200, and come out in one register.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <optional>

#include "compiler/codegen/lane_layouts.h"

namespace kiln {

/// Sums that are added up together: with AVX-512 half of the registers.
inline constexpr unsigned kMostSumsTogether = 8;

/// How two lanes' numbers of 32 bits become one, in any order of the two.
struct ReductionOperator {
  unsigned opcode = 0;
  llvm::Intrinsic::ID intrinsic = llvm::Intrinsic::not_intrinsic;
  llvm::FastMathFlags flags;

  bool is_like(const ReductionOperator& other) const { return opcode == other.opcode && intrinsic == other.intrinsic; }
};

/// What is one number of all 32 lanes.
struct LaneSum {
  llvm::Value* lanes;
  ReductionOperator operation;
  bool is_made_of_transposes;
};

/// What the first element of a vector is the sum of, if nobody wants what has been added up before. Registers have
/// `width` numbers, 8 or 16.
std::optional<LaneSum> lane_sum(llvm::ExtractElementInst& element, unsigned width);

/// A sum that has become one register.
struct PartialSum {
  llvm::Value* numbers;
  llvm::SmallVector<unsigned, 4> elements;  // as LaneLayout's
};

/// What makes one register of a sum's registers.
PartialSum add_registers(const LaneSum& sum, unsigned width, llvm::IRBuilderBase& builder);

/// The sums, whose numbers lie alike.
llvm::SmallVector<llvm::Value*> add_up(llvm::ArrayRef<PartialSum> sums, const ReductionOperator& operation,
                                       llvm::IRBuilderBase& builder);

/// Sums that are left at the end: those of a block together; with registers of eight numbers single ones, too.
void add_lanes_by_pairs(llvm::Module& module, unsigned width);

}  // namespace kiln
