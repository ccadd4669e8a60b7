// Differences of one thread's values from lane to lane, before control flow is structured.
//
// An estimate for passes that choose by it: it takes for granted that narrow numbers do not wrap and that a phi has
// what enters its loop. The widener's own strides (widener_strides.h) are exact.
//
// Complexity: linear in the function's instructions, once.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <optional>

#include "compiler/analysis/divergence.h"

namespace kiln {

struct LaneStride {
  bool is_affine = false;
  std::optional<int64_t> distance;  // if it is a constant; of pointers in bytes
};

/// Whether rows at this distance, one for each lane, are in so few sets of the cache that they evict one another.
bool rows_conflict(int64_t distance);

class LaneStrides {
 public:
  LaneStrides(llvm::Function& function, const Divergence& divergence);

  LaneStride of(const llvm::Value* value) const {
    return divergence_.is_divergent(value) ? strides_.lookup(value) : LaneStride{true, 0};
  }

 private:
  LaneStride compute(const llvm::Instruction& instruction) const;
  LaneStride of_address(const llvm::GetElementPtrInst& address) const;
  LaneStride of_counter(const llvm::PHINode& phi) const;

  const Divergence& divergence_;
  const llvm::DataLayout& layout_;
  llvm::DenseMap<const llvm::Value*, LaneStride> strides_;
};

}  // namespace kiln
