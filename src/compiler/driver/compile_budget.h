// Limits of memory, time and stack for one compilation.
//
// Problem: Clang and LLVM take what they need, and where there is no more they end the process. A kernel of a few lines
// can make them take any amount.
//
// Idea: all that they do allocates. The library's malloc (src/compiler/CMakeLists.txt wraps it, for operator new too)
// counts what the thread's compilation holds and looks at the clock and the stack now and then. Past a limit the next
// small allocation throws std::bad_alloc, which goes through LLVM's frames to the factory; what they had allocated is
// lost.
//
// Only small allocations throw: llvm::DenseMap notes its new size before it allocates the table, and would be destroyed
// with a size that it has not got. No table of its is below 512 bytes, and other containers change nothing until they
// have their memory. Where the system itself refuses memory, a reserve that the compilation has set aside serves until
// the next small allocation.
//
// Rejected: checks between passes only (one pass may take everything); a thread that is left behind (it would keep what
// it has, up to the limit); a process of its own (10 ms for each compilation, and it needs the program's file system,
// limits and sandbox to permit it).
//
// Cost: a comparison and an addition for each allocation.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/compiler.h"

namespace kiln {

enum class CompileExcess : uint8_t { kNone, kMemory, kTime, kStack, kSystemMemory };

/// For the time of a compilation on this thread. One at a time for each thread.
class CompileBudget {
 public:
  /// Throws std::bad_alloc where there is no memory for the reserve.
  explicit CompileBudget(const CompileLimits& limits);
  ~CompileBudget();
  CompileBudget(const CompileBudget&) = delete;
  CompileBudget& operator=(const CompileBudget&) = delete;

  /// What has been exceeded first.
  CompileExcess excess() const { return excess_; }
  /// "LLVM needed more than the 4294967296 bytes of KILN_COMPILE_MEMORY_LIMIT": for kMemory, kTime and kStack.
  std::string describe() const;

  /// For the wrapped functions: whether an allocation is to fail.
  bool refuses(size_t bytes) noexcept;
  /// The system has refused an allocation. Whether it is worth another try.
  bool frees_reserve() noexcept;
  void add(size_t bytes) noexcept { live_ += static_cast<int64_t>(bytes); }
  void remove(size_t bytes) noexcept { live_ -= static_cast<int64_t>(bytes); }

 private:
  using Clock = std::chrono::steady_clock;
  bool may_throw() const noexcept;
  void note(CompileExcess excess) noexcept;

  const CompileLimits limits_;
  int64_t live_ = 0;  // bytes; less than 0 where what was there before has been freed
  int64_t most_ = 0;  // bytes from which on allocations fail
  uint32_t calls_ = 0;
  Clock::time_point end_;  // time from which on allocations fail
  uintptr_t lowest_frame_ = 0;
  void* reserve_ = nullptr;
  CompileExcess excess_ = CompileExcess::kNone;
  bool is_due_ = false;  // the next small allocation fails
};

}  // namespace kiln
