// Runs what needs a large stack: compilations, and launches whose caller has too little stack left.
//
// Clang and LLVM recurse with the depth of what they compile, and a caller's stack may be of any size. So every
// compilation runs on a thread of Kiln's, whose stack is large and known. The thread waits for the next job afterwards:
// LLVM's target machine and the memory allocator's arena are a thread's own, and making them takes a millisecond.
//
// Rejected: switching to a mapped stack on the caller's thread. Sanitizers, debuggers and Python's check of its own
// stack take the stack pointer for the thread's; and a compilation that the caller gives up (an interruption, a time
// limit) could not go on by itself.
//
// A job that may be abandoned owns everything that it touches. It then ends in the background.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace kiln {

class JobThreads {
 public:
  /// Threads with stacks of `stack_bytes`, or of a quarter or a sixteenth where there is no memory for more, but
  /// of 4 MiB at least.
  explicit JobThreads(size_t stack_bytes);
  /// For compilations.
  static JobThreads& compiling();
  /// For launches. Has stacks of kKernelStackBytes.
  static JobThreads& launching();

  /// Runs `job` on one of the threads and rethrows what it has thrown. `job` may refer to the caller's variables.
  /// Where no thread can be started, it runs on the caller's if that has `enough` bytes of stack left; otherwise
  /// OutOfMemory is thrown. `while_waiting`, where it is not null, is called now and then meanwhile; it throws nothing.
  void run(const std::function<void()>& job, size_t enough, const std::function<void()>& while_waiting = nullptr);

  /// The same for a job that owns all that it touches. Throws Interrupted as soon as the program is interrupted.
  /// `deadline`: after it, returns false. The job goes on in both cases.
  bool run_abandonable(const std::function<void()>& job, size_t enough,
                       std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt);

 private:
  struct Task;
  struct Worker;
  // Of one that has not started a thread. The threads of any other refer to it and wait until the process ends.
  ~JobThreads() = default;
  static JobThreads& shared(std::atomic<JobThreads*>& instance, size_t stack_bytes);
  // Null where no thread can be started.
  std::shared_ptr<Task> submit(const std::function<void()>& job);
  void work(const std::shared_ptr<Worker>& worker);

  static constexpr size_t kMostIdle = 4;
  const size_t stack_bytes_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Worker>> idle_;  // the last one to have become so is at the end
};

/// Of each thread that runs kernels, the pool's too. A kernel's frames have to fit (`kCpuStackLimit`).
inline constexpr size_t kKernelStackBytes = size_t{4} << 20;

}  // namespace kiln
