// Which memory threads access after a barrier, and which accesses of other threads must therefore come before it.
//
// Memory is distinguished by its object, an argument of the kernel or a threadgroup variable, but not by offset. Atomic
// updates whose result is unused may be reordered among themselves.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/BasicBlock.h>
#include <llvm/IR/Instruction.h>

#include <cstdint>
#include <optional>
#include <utility>

namespace kiln {

/// Whether the instruction writes to memory that other threads can access.
bool writes_shared(const llvm::Instruction& instruction);

class MemoryAfterBarrier {
 public:
  explicit MemoryAfterBarrier(llvm::BasicBlock& barrier);

  /// Whether the instruction must come before what follows the barrier.
  bool is_met_by(const llvm::Instruction& instruction) const;

 private:
  // A threadgroup variable, or the memory of a kernel argument, identified by where its address is loaded from.
  using Memory = std::pair<const llvm::Value*, int64_t>;

  static std::optional<Memory> memory_of(const llvm::Value* object);
  void find(const llvm::Instruction& instruction);

  // How each is accessed, and the accesses whose address is unknown.
  llvm::DenseMap<Memory, unsigned> uses_;
  unsigned unknown_ = 0;
};

}  // namespace kiln
