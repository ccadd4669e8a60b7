// What a threadgroup accesses and a processor does not foresee is asked for some threadgroups before.
//
// A processor follows what is read in order and fetches ahead. A simdgroup whose threads each add up sixteen elements,
// 256 apart, reads two cache lines of each KiB, the next simdgroup two more: all of it is in order only for who sees
// the threadgroup as a whole. (Unrolled code is put in that order; see address_order.h.) Nor does a processor go beyond
// a page of memory: where a threadgroup reads one or more, its neighbour begins with what nobody has fetched, and a
// threadgroup that waits for its own sum, as an RMS norm's does, has nothing else to do meanwhile. What is written must
// be fetched too, and until then all later stores wait behind it, those to threadgroup memory and of registers among
// them: the queue is full soon. Threadgroups further on in the grid access the same places further on, so that each
// row's address is computed for another one, too, and asked for: for the second next one, as what the next reads first
// would come too late where it is asked for last; for the next one where simdgroups do not wait for one another. Lines
// in the order of memory, since in the order of the rows a tree reduction takes a seventh longer. With AVX2 it took two
// thirds of the time, an RMS norm nine tenths, a scan eight tenths on a Xeon. They come into the second cache: a Zen
// 4's first one waits for few at a time, so that an RMS norm takes 0.65 times as long and a tree reduction that has the
// machine for itself half; on an Emerald Rapids a tree reduction takes nine tenths, and nothing longer.
//
// A Zen 4 that loads a register of 64 bytes from each line runs far ahead of what it has, and then takes longer the
// more is asked for: an RMS norm whose rows hardly fit into the third cache 1.4 times as long as if nothing were. With
// two loads of one number in front of each register's it takes 0.65 of that, 0.9 with rows from memory, and as long as
// before in the second cache and on an Emerald Rapids. Smaller registers load often enough.
//
// Rejected: asking for less than a page that is read in order, which made a scan slower where its arrays lay a multiple
// of 4 KiB apart; asking for the next threadgroup, whose first rows may be asked for last: a tree reduction takes 8 %
// longer; asking for what is read and not for what is written, with which an RMS norm took as long as with nothing on a
// Xeon; asking for what is written where it is stored, across which LLVM moves no loads: a scan, whose loads then came
// behind stores to addresses that end with the same 12 bits, took 2.5 times as long on a Xeon where the output lay 64
// to 112 bytes beyond a multiple of 4 KiB behind the input.
#pragma once

#include <llvm/IR/Instruction.h>
#include <llvm/IR/PassManager.h>

#include <cstdint>

namespace kiln {

/// Of a function whose second parameter is its threadgroup's record, of rows outside of loops, or in loops with a known
/// number of iterations: those of the threadgroup that comes `ahead` later, with registers of `register_bytes`.
class PrefetchPass : public llvm::PassInfoMixin<PrefetchPass> {
 public:
  PrefetchPass(uint32_t ahead, uint32_t register_bytes) : ahead_(ahead), register_bytes_(register_bytes) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }

 private:
  uint32_t ahead_, register_bytes_;
};

}  // namespace kiln
