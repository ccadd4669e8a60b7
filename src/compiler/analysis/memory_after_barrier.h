// Which memory threads use behind a wait, and which of what others do has to come before that.
//
// Memory is told apart by what it belongs to, a kernel's argument or a variable of the threadgroup's; places in it are
// not. Atomic updates whose result nobody wants may come in any order among themselves.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/BasicBlock.h>
#include <llvm/IR/Instruction.h>

#include <cstdint>
#include <optional>
#include <utility>

namespace kiln {

/// Whether the instruction writes to memory that is not one thread's.
bool writes_shared(const llvm::Instruction& instruction);

class MemoryAfterBarrier {
 public:
  explicit MemoryAfterBarrier(llvm::BasicBlock& wait);

  /// Whether it matters that the instruction comes before what is behind the wait.
  bool is_met_by(const llvm::Instruction& instruction) const;

 private:
  // A variable of the threadgroup's, or memory that is a kernel's argument, by where its address is loaded from.
  using Place = std::pair<const llvm::Value*, int64_t>;

  static std::optional<Place> place_of(const llvm::Value* object);
  void find(const llvm::Instruction& instruction);

  // How each is used, and what is not known.
  llvm::DenseMap<Place, unsigned> uses_;
  unsigned unknown_ = 0;
};

}  // namespace kiln
