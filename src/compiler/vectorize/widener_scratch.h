// Stack memory that each user writes before it reads. Above a size it is reused.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>

#include "compiler/vectorize/widener_lanes.h"

namespace kiln::widening {

class Scratch {
 public:
  explicit Scratch(Lanes& lanes) : lanes_(lanes) {}

  AllocaInst* acquire(Type* type);
  /// Code that is emitted from here on may write to it.
  void release(AllocaInst* slot) { unused_[slot->getAllocatedType()].push_back(slot); }

 private:
  Lanes& lanes_;
  DenseMap<Type*, SmallVector<AllocaInst*>> unused_;
  uint64_t bytes_ = 0;
};

}  // namespace kiln::widening
