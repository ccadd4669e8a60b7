// Address order: vector loads of consecutive memory are issued in address order, whichever simdgroup each belongs to.
//
// Where threads add up elements that lie far apart, as in a tree reduction, each simdgroup's loads jump, though the
// threadgroup as a whole reads its part of memory from beginning to end. In unrolled code one simdgroup follows the
// other. No prefetcher of a Zen 4 follows the jumps, so the code reads no faster than with software prefetch. In
// address order all simdgroups' sums are in progress, and each load is added to its own sum at once. A tree reduction
// then takes as long as a loop that reads from beginning to end: 0.8 times as long as with software prefetch, 0.97
// times on an Emerald Rapids.
//
// schedule_for_pressure and LLVM's scheduler would restore an order with low register pressure. An empty inline
// assembly before each load keeps the order; with a fence for the compiler alone a tree reduction took 1.3 times as
// long with 16 registers of 32 bytes. There half the sums of eight simdgroups are spilled, which is no slower even
// where the data is in the second-level cache.
//
// Rejected: software prefetch as well, which doubles the instructions: 1.2 times as long with 32 registers of 64 bytes.
// Two or four simdgroups at a time, which fit into registers: the loads still jump, and it is no faster than one at a
// time.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/PassManager.h>

#include "compiler/ir/vector_isa.h"

namespace kiln {

/// For unrolled code whose register pressure does not greatly exceed the processor's registers.
class AddressOrderPass : public llvm::PassInfoMixin<AddressOrderPass> {
 public:
  explicit AddressOrderPass(const VectorIsa& vector_isa) : isa_(vector_isa) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }

 private:
  VectorIsa isa_;
};

}  // namespace kiln
