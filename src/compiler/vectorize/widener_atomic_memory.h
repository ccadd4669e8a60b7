// What is known of the memory that atomic operations update, and one lane's operation on it.
//
// A launch that one thread of the process runs, and threadgroup memory, need no atomics. If a launch's code does
// nothing else with an output than striped updates, these take a lock for a whole range (targets/cpu/row_updates.h).
//
// The analysis is linear in the function, once.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <optional>

#include "compiler/ir/striped_atomics.h"
#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_scratch.h"
#include "compiler/vectorize/widener_strides.h"

namespace kiln::widening {

class AtomicMemory {
 public:
  /// `flag_offset`: of the launch's exclusive flag, which is loaded at the start of the thread's code if that has
  /// atomic operations; 0: there is none. `is_output` says of an argument whether it is one of the launch's outputs.
  AtomicMemory(Function& from, uint64_t flag_offset, function_ref<bool(uint64_t)> is_output, Strides& strides,
               Scratch& scratch, Lanes& lanes);

  /// An i1 of the thread's code: whether no other thread of the process uses the memory. Null if the operation must be
  /// atomic in any case. One thread of the process runs all threads of a threadgroup.
  Value* is_exclusive(Instruction& instruction) const;

  /// The array of a striped update, if there are no other uses of it.
  std::optional<UpdatedArray> updated_array(const Instruction& update);

  /// Inserts `scalar_copy`, a copy of the instruction for one lane. An atomic may become a load and a store in an
  /// exclusive launch. Returns the result.
  Value* insert_scalar(Instruction& instruction, Instruction& scalar_copy, bool may_be_exclusive, IRBuilder<>& builder);

 private:
  void find_updated_arrays(function_ref<bool(uint64_t)> is_output);

  Function& from_;
  Strides& strides_;
  Scratch& scratch_;
  Lanes& lanes_;
  const DataLayout& layout_;
  DenseMap<const Instruction*, LoadInst*> updated_arrays_;  // of atomics: the load of their array's address
  Value* exclusive_ = nullptr;  // in from_: whether the launch is exclusive; null if no atomic needs it
};

}  // namespace kiln::widening
