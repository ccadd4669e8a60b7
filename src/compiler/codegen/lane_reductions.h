// Reductions of a simdgroup's lanes to one number: sums, and other operations that combine all lanes in the same way.
//
// Adding lanes at distances 1, 2, … costs a permutation and an addition for each register at each distance, although
// half of the lanes would suffice for the next distance. This pass packs the sums of two registers into one instead, as
// long as there are two. A simdgroup in four registers takes 15 instructions rather than 27, with the same sums. Sums
// of several simdgroups, or of several values, are reduced together: eight of them in registers of 16 numbers take 48
// instructions rather than 200, and end in one register.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <optional>

#include "compiler/codegen/lane_layouts.h"
#include "compiler/ir/vector_isa.h"

namespace kiln {

/// The most sums that are reduced together: half of 32 registers of 16 numbers.
inline constexpr unsigned kMostReductionsTogether = 8;

/// An operation that combines 32-bit numbers of two lanes, in either order.
struct ReductionOperator {
  unsigned opcode = 0;
  llvm::Intrinsic::ID intrinsic = llvm::Intrinsic::not_intrinsic;
  llvm::FastMathFlags flags;

  bool is_like(const ReductionOperator& other) const { return opcode == other.opcode && intrinsic == other.intrinsic; }
};

/// A reduction of all 32 lanes to one number.
struct LaneSum {
  llvm::Value* lanes;
  ReductionOperator operation;
  bool has_transposed_order;
};

/// The reduction whose result is a vector's first element, if its intermediate sums have no other users. Registers have
/// 8 or 16 numbers.
std::optional<LaneSum> lane_sum(llvm::ExtractElementInst& element, const VectorIsa& vector_isa);

/// A sum reduced to one register.
struct PartialSum {
  llvm::Value* numbers;
  llvm::SmallVector<unsigned, 4> elements;  // as in LaneLayout
};

/// Reduces a sum's registers to one.
PartialSum reduce_to_register(const LaneSum& sum, const VectorIsa& vector_isa, llvm::IRBuilderBase& builder);

/// Reduces partial sums, which must have the same layout.
llvm::SmallVector<llvm::Value*> reduce_together(llvm::ArrayRef<PartialSum> sums, const ReductionOperator& operation,
                                                llvm::IRBuilderBase& builder);

/// Reduces the sums that remain at the end of the pipeline, those of a block together. With registers of eight numbers
/// it also reduces single ones.
void reduce_lanes(llvm::Module& module, const VectorIsa& vector_isa);

}  // namespace kiln
