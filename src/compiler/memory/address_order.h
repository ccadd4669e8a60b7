// Rows that follow one another in memory are read in that order, whichever simdgroup each belongs to.
//
// Simdgroups whose threads add up elements that lie far apart, as those of a tree reduction do, each read rows with
// jumps between them, though the threadgroup as a whole reads its part of memory from the beginning to the end. In
// code that has been unrolled one simdgroup comes behind the other: no prefetcher of a Zen 4's follows what jumps, so
// that it reads no faster than lines are asked for. In memory's order all simdgroups' sums are under way, and each row
// goes into its own at once: a tree reduction then takes as long as a loop that reads from the beginning to the end,
// 0.8 times as long as with lines that are asked for, on an Emerald Rapids 0.97 times.
//
// schedule_for_pressure, and LLVM's scheduler, would go back to an order in which few registers are wanted. An empty
// line of assembly before each row keeps it; with a fence for the compiler alone a tree reduction took 1.3 times as
// long with AVX2. There half the sums of eight simdgroups lie in memory, which is no slower even where the rows are in
// the second cache.
//
// Rejected: asking for lines as well, which takes as many instructions again: 1.2 times as long with AVX-512. Two or
// four simdgroups at a time, which fit into registers: still jumps, and no faster than one at a time.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/PassManager.h>

namespace kiln {

/// Of unrolled code, where not many more registers are wanted at a time than the processor's `registers` of
/// `register_bytes`.
class AddressOrderPass : public llvm::PassInfoMixin<AddressOrderPass> {
 public:
  AddressOrderPass(unsigned registers, unsigned register_bytes)
      : registers_(registers), register_bytes_(register_bytes) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }

 private:
  unsigned registers_, register_bytes_;
};

}  // namespace kiln
