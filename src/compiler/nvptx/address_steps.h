// How the addresses of a loop's copies change from thread to thread, and from iteration to iteration.
//
// SCEV knows the second of sums and products. Tiles are indexed with quotients and remainders of the thread's index,
// `tile[i / 32 * 40 + i % 32]`, through which these two analyses see. Each follows the operations that compute an
// address, up to a limited depth.
//
// Complexity: AddressSteps visits each operation once; IterationDistances, once for each path to it.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Operator.h>

#include <cstdint>
#include <optional>

namespace kiln {

/// Whether the value is this special register.
bool reads(const llvm::Value& value, llvm::Intrinsic::ID special_register);

/// Whether the value is the thread's x in its threadgroup.
bool is_thread_x(const llvm::Value& value);

/// Special registers that are the same for threads that differ in x alone.
bool is_same_along_x(const llvm::Value& value);

/// A value is A + factor * r, where r is the thread's number in its group of adjacent threads in x. A is the same for
/// all threads of the group, and its `zeros` lowest bits are zero.
struct AddressStep {
  uint64_t factor = 0;
  unsigned zeros = 0;
};

class AddressSteps {
 public:
  /// In groups of `threads`, a power of two. `at` is where values are used.
  AddressSteps(unsigned threads, const llvm::BasicBlock& at, const llvm::LoopInfo& loops,
               const llvm::DataLayout& layout)
      : threads_(threads), at_(at), loops_(loops), layout_(layout) {}

  std::optional<AddressStep> of(llvm::Value& value) { return of(value, 0); }

 private:
  using Step = AddressStep;

  std::optional<Step> of(llvm::Value& value, unsigned depth);
  unsigned known_zeros(const llvm::Value& value) const;
  uint64_t bits_of(uint64_t factor) const;
  bool has_no_carry(const Step& step, unsigned width) const;
  std::optional<Step> compute(llvm::Value& value, unsigned depth);
  std::optional<Step> of_counter(llvm::PHINode& phi, unsigned depth);
  std::optional<Step> offset_of(llvm::GEPOperator& address, unsigned depth);
  std::optional<Step> of_address(llvm::GEPOperator& address, unsigned depth);
  std::optional<Step> of_arithmetic(llvm::Operator& operation, unsigned depth);

  const unsigned threads_;
  const llvm::BasicBlock& at_;
  const llvm::LoopInfo& loops_;
  const llvm::DataLayout& layout_;
  llvm::DenseMap<llvm::Value*, std::optional<Step>> steps_;
};

/// A counter of a loop of one block: its value in the first iteration, and what an iteration adds.
struct Counter {
  llvm::Value *start, *increment;
};

std::optional<Counter> counter_of(const llvm::PHINode& phi);

/// What is added to a value in each iteration of a loop of one block, modulo two to the power of its width. In all
/// iterations together, that is less than half of what the type, or 32 bits, can hold: the value does not return to
/// where it was.
class IterationDistances {
 public:
  /// `trips` is not zero.
  IterationDistances(const llvm::BasicBlock& block, uint64_t trips)
      : block_(block), layout_(block.getDataLayout()), trips_(trips) {}

  std::optional<int64_t> of(llvm::Value& value) const { return of(value, 0); }

 private:
  std::optional<int64_t> of(llvm::Value& value, unsigned depth) const;
  std::optional<int64_t> compute(llvm::Value& value, unsigned depth) const;
  std::optional<int64_t> of_address(llvm::GetElementPtrInst& address, unsigned depth) const;

  const llvm::BasicBlock& block_;
  const llvm::DataLayout& layout_;
  const uint64_t trips_;
};

}  // namespace kiln
