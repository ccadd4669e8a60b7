// Copies of a threadgroup from device to threadgroup memory become copies of vectors.
//
// In a tiled body, the threads of a threadgroup copy a tile in a loop. Each has one element of it at a time, and
// neighbours have adjacent elements:
//
//     for (uint i = thread_index_in_threadgroup; i < 64 * 32; i += 128)
//         tile[i / 32 * 40 + i % 32] = x[i / 32 * width + k + i % 32];
//
// Of halves that is one access of two bytes for each element, and an instruction for the load and one for the store. A
// product of such tiles is bound by the number of these instructions. Which thread copies an element makes no
// difference if no other code accesses the tile until a barrier. So the pass gives a thread the adjacent elements that
// a group of V neighbours copied in one iteration, and V times as many threads' iterations: thread x copies in
// iteration j what threads V * (x % G) … V * (x % G) + V - 1 would have copied in iteration x / G + V * j, where G is
// the number of such groups in a row of the threadgroup. The vectors have up to 16 bytes.
//
// A loop is changed if
// * it is one basic block, with the same constant trip count for all threads, a multiple of V,
// * all threads of the threadgroup execute it, once between two barriers: no divergent branch decides about it, and
//   threadgroups are full,
// * it does nothing but loads of memory that does not change during a launch, and stores of what they load, each to
//   another threadgroup variable, which nothing else accesses between the barriers around the loop
//   (barrier_intervals.h),
// * addresses within a group are proved to be adjacent, and those of the vectors to be aligned
//   (address_steps.h): x is A + r, where r is the thread's number in its group and the low bits of A are zero, which
//   sums, products, shifts, masks, quotients and remainders by constants keep or drop.
//
// Loads with guards are not adjacent for the pass. It stands after guards have become unnecessary, for known sizes or
// in a loop's version without them, and before short loops are unrolled.
//
// Rejected: LLVM's SCEV in place of steps, which does not see through masks and remainders of thread indices. Giving a
// thread adjacent elements in flattened order, which needs a proof over two dimensions.
//
// Complexity: linear in the function for each loop that copies, of which there are few.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include <cstdint>

namespace kiln {

/// `function` is a kernel's entry, of threadgroups that all have `width` threads in x, and of which no thread is
/// missing. Returns whether a loop was changed.
bool vectorize_threadgroup_copies(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, uint32_t width);

}  // namespace kiln
