// Software prefetch, some threadgroups ahead, of accesses that the hardware does not predict.
//
// A hardware prefetcher follows sequential accesses. A simdgroup whose threads each add up sixteen elements, 256 apart,
// reads two cache lines of each KiB, the next simdgroup two more: only the threadgroup as a whole reads sequentially.
// A hardware prefetcher also stops at a page boundary. Where a threadgroup reads a page or more, its neighbour starts
// with lines that are not cached, and a threadgroup that waits for its own sum, as in an RMS norm, has no other work
// meanwhile.
//
// Stores must fetch their lines, too. Until then they block all later stores, including those to threadgroup memory and
// spills, so the store queue fills up soon.
//
// Later threadgroups of the grid access the same offsets further on. So each access's address is computed for a later
// threadgroup, too, and prefetched: for the second next one, as the lines that the next one reads first might be
// prefetched last. Lines are prefetched in address order. In the order of the accesses a tree reduction takes a seventh
// longer.
//
// With registers of 32 bytes a tree reduction took two thirds of the time, an RMS norm nine tenths, a scan eight tenths
// on a Xeon. Lines go into the second-level cache, because a Zen 4's first-level cache has few outstanding misses: an
// RMS norm takes 0.65 times as long, and a tree reduction that has the machine to itself half. On an Emerald Rapids a
// tree reduction takes nine tenths, and nothing takes longer.
//
// A Zen 4 that loads a 64-byte register from each line runs far ahead of its data, and then slows down the more is
// prefetched: an RMS norm whose rows hardly fit into the third-level cache took 1.4 times as long as without prefetch.
// With two scalar loads before each vector load it takes 0.65 of that, 0.9 with rows from memory, and as long as before
// in the second-level cache and on an Emerald Rapids. Smaller registers need no such loads, as they load often enough.
//
// Rejected: prefetching less than a page that is read sequentially, which made a scan slower where its arrays were a
// multiple of 4 KiB apart; prefetching for the next threadgroup, whose first accesses may be prefetched last: a tree
// reduction takes 8 % longer; prefetching loads but not stores, with which an RMS norm took as long as without prefetch
// on a Xeon.
//
// Also rejected: prefetching a store's line at the store, across which LLVM moves no loads. The loads of a scan then
// followed stores to addresses with the same low 12 bits. It took 2.5 times as long on a Xeon where the output began 64
// to 112 bytes beyond a multiple of 4 KiB after the input.
#pragma once

#include <llvm/IR/Instruction.h>
#include <llvm/IR/PassManager.h>

#include "compiler/ir/vector_isa.h"

namespace kiln {

/// For a function whose second parameter is its threadgroup's record: accesses outside loops, or in loops with a known
/// trip count, for the second next threadgroup.
class PrefetchPass : public llvm::PassInfoMixin<PrefetchPass> {
 public:
  explicit PrefetchPass(const VectorIsa& vector_isa) : isa_(vector_isa) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }

 private:
  VectorIsa isa_;
};

}  // namespace kiln
