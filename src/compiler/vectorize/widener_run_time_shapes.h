// Loads and stores whose lanes may turn out to be consecutive when the code runs.
//
// Problem: where the step from lane to lane is not known when the kernel is compiled, an access is a gather, a scatter,
// or a loop over lanes. Mostly the lanes are consecutive all the same: an index through max, min, clamp or a remainder
// is so everywhere but at a border, and in a threadgroup of 16 threads a row each half of a simdgroup is.
//
// Idea: an address is a sum of uniform values and of a few numbers that differ between lanes (widener_lane_sums.h).
// The sum of the latter, in elements, is a vector that is compared with its first element plus 0, 1, 2, …, for each
// part of a simdgroup that fills a register of words. A bounds check of consecutive elements is one of the first of
// them. If all parts pass, each is one load or store.
//
// The sum is computed in 32 bits, as a rule. One number that is extended is tested before that: consecutive numbers
// stay so if the narrow ones do not wrap, which the first of them tells. Several are added only if all are small.
//
// A quotient, as in `weights[i / columns]`, is tested for being the same in each part instead: then each is one load of
// one element.
//
// Rejected: an analysis that proves steps of 0 or 1 through min, max and remainders, so that the first and the last
// lane suffice. It knows some operations, this all of them; and the vector is there. A branch for each part: four times
// the code, and few parts fail where any pass.
//
// Complexity: linear in the accesses; a block's tested sums are searched one by one, and there are at most kMostTested.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "compiler/ir/vector_isa.h"
#include "compiler/vectorize/widener_checks.h"
#include "compiler/vectorize/widener_lane_accesses.h"
#include "compiler/vectorize/widener_lane_sums.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_strided.h"
#include "compiler/vectorize/widener_thread_code.h"

namespace kiln::widening {

class RunTimeShapes {
 public:
  RunTimeShapes(ThreadCode& code, const LaneSums& lane_sums, AddressChecks& checks, StridedAccesses& strided,
                LaneAccesses& lane_accesses, Lanes& lanes)
      : flow_(code.flow),
        isa_(lanes.vector_isa()),
        strides_(code.strides),
        lane_sums_(lane_sums),
        checks_(checks),
        strided_(strided),
        lane_accesses_(lane_accesses),
        lanes_(lanes),
        layout_(lanes.layout()) {}

  /// False, and nothing is emitted, if the lanes cannot be consecutive or too many accesses have been tested.
  bool load(LoadInst& load, IRBuilder<>& builder);
  bool store(StoreInst& store, IRBuilder<>& builder);

 private:
  // An access that consists of consecutive parts if the lanes' sums do.
  struct Shape {
    LaneSum address;
    std::optional<LaneSum> offset;  // what a divergent guard compares with `limit`; it has the terms of the address
    Value* allowed;                 // the guard; null: none
    Value* limit;                   // of a divergent guard
    uint64_t bytes;                 // of an element
    unsigned part_lanes;
    bool is_load;
  };

  // Whether lanes' sums are consecutive in each part, and the first of each.
  struct TestedSum {
    SmallVector<LaneTerm> terms;
    Value* condition;
    SmallVector<Value*> firsts;
    unsigned scope;  // in which it is known
  };

  std::optional<Shape> shape_of(Instruction& access, Type* type);
  Value* without_terms(Value* value, IRBuilder<>& builder);
  std::pair<Value*, Value*> sums_of(const LaneSum& sum, IRBuilder<>& builder);
  const TestedSum& tested(const LaneSum& sum, unsigned width, IRBuilder<>& builder);
  TestedSum tested_and_extended(const LaneSum& sum, unsigned width, IRBuilder<>& builder);
  Values emit_by_shape(const Shape& shape, IRBuilder<>& builder, function_ref<Values(ArrayRef<Value*>)> in_parts,
                       Emitter scalarized);

  const StructuredFlow& flow_;
  const VectorIsa& isa_;
  Strides& strides_;
  const LaneSums& lane_sums_;
  AddressChecks& checks_;
  StridedAccesses& strided_;
  LaneAccesses& lane_accesses_;
  Lanes& lanes_;
  const DataLayout& layout_;
  SmallVector<TestedSum> tested_sums_;  // in the scopes that are open
  unsigned num_tested_ = 0;             // accesses
};

}  // namespace kiln::widening
