// Limits of memory, time and stack for one compilation, and its end where it exceeds them.
//
// Problem: Clang and LLVM take what they need, and where there is no more they end the process. A kernel of a few lines
// can make them take any amount.
//
// Idea: all that they do allocates. The library's malloc (src/compiler/CMakeLists.txt wraps it, for operator new too)
// counts what the thread's compilation holds and looks at the clock and the stack now and then. Past a limit the
// compilation is abandoned at the next small allocation: most of its memory is freed (ir/abandonment.h), and a
// longjmp() leaves its frames for run(). LLVM's fatal errors end it in the same way, as in Clang's own
// CrashRecoveryContext. What else it had allocated is lost.
//
// Frames are left without being unwound. An exception would be worse: Clang's and LLVM's frames have no clean-up, so
// that destructors of Kiln's would free IR to which value handles in frames that are gone refer, and some of LLVM's
// functions cannot be unwound at all (of two functions at one address, one of them empty, lld's index keeps one).
//
// Only small allocations end it: llvm::DenseMap notes its new size before it allocates the table, and what is freed may
// look into the map. No table of its is below 512 bytes, and other containers change nothing until they have their
// memory. None that is made under a lock, or while a static variable is initialized, ends it: the next compilation
// would wait for ever. Where the system itself refuses memory, a reserve that the compilation has set aside serves
// until the next small allocation.
//
// Rejected: checks between passes only (one pass may take everything); a thread that is left behind (it would keep what
// it has, up to the limit); a process of its own (10 ms for each compilation, and it needs the program's file system,
// limits and sandbox to permit it).
//
// Cost: a comparison and an addition for each allocation, an addition for each lock.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include <chrono>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/compiler.h"

namespace kiln {

enum class CompileExcess : uint8_t { kNone, kMemory, kTime, kAllocations, kStack, kSystemMemory };

/// For the time of a compilation on this thread. One at a time for each thread.
class CompileBudget {
 public:
  /// Throws std::bad_alloc where there is no memory for the reserve.
  explicit CompileBudget(const CompileLimits& limits);
  ~CompileBudget();
  CompileBudget(const CompileBudget&) = delete;
  CompileBudget& operator=(const CompileBudget&) = delete;

  /// Runs `compile`. Returns false where it was abandoned.
  bool run(llvm::function_ref<void()> compile);

  /// Abandons this thread's compilation, which LLVM cannot go on with.
  [[noreturn]] static void give_up(const char* reason);

  /// What has been exceeded first.
  CompileExcess excess() const { return excess_; }
  /// "LLVM needed more than the 4294967296 bytes of KILN_COMPILE_MEMORY_LIMIT": for kMemory, kTime, kAllocations and
  /// kStack.
  std::string describe() const;
  /// LLVM's reason, where it gave up.
  const std::string& reason() const { return reason_; }

  /// For the wrapped functions, before an allocation. Does not return where the compilation is to end here.
  void check(size_t bytes) noexcept;
  /// The system has refused an allocation. Whether it is worth another try.
  bool frees_reserve() noexcept;
  void add(size_t bytes) noexcept { live_ += static_cast<int64_t>(bytes); }
  void remove(size_t bytes) noexcept { live_ -= static_cast<int64_t>(bytes); }

 private:
  using Clock = std::chrono::steady_clock;
  bool may_end() const noexcept;
  [[noreturn]] void abandon(bool frees) noexcept;
  void note(CompileExcess excess) noexcept;

  const CompileLimits limits_;
  int64_t live_ = 0;  // bytes; less than 0 where what was there before has been freed
  int64_t most_ = 0;  // bytes past which it ends
  uint64_t calls_ = 0;
  Clock::time_point end_;  // time from which on it ends
  uintptr_t lowest_frame_ = 0;
  void* reserve_ = nullptr;
  CompileExcess excess_ = CompileExcess::kNone;
  std::string reason_;
  bool is_due_ = false;     // the next small allocation ends the compilation
  bool is_ending_ = false;  // it is being abandoned
  std::jmp_buf end_of_run_;
};

}  // namespace kiln
