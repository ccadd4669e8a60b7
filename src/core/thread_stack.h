// Threads whose stacks have a known size, and how much of its stack a thread has left.
//
// A thread of the caller's may have a stack of any size: Python's `threading.stack_size(32 * 1024)`, a program's
// pthread attributes, `ulimit -s`. Clang recurses, and a kernel's private arrays lie on the stack of the thread that
// runs it. std::thread takes the system's default size and cannot be given another.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>
#include <optional>

namespace kiln {

/// Bytes between the calling function's frame and the end of the thread's stack. 0 on a stack that is not the thread's
/// own, such as a fiber's, whose size is unknown. The bounds are looked up once for each thread.
size_t stack_left() noexcept;

/// A thread with a stack of `stack_bytes`. All signals are blocked in it but those by which a thread learns what it
/// has done itself: a signal to the process goes to one of the program's own threads.
class Thread {
 public:
  /// Nothing where the system has no room for another thread.
  static std::optional<Thread> start(size_t stack_bytes, std::function<void()> function) noexcept;

  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&&) = delete;
  /// Lets it go where it has not been joined.
  ~Thread();

  void join();

 private:
  explicit Thread(pthread_t handle) : handle_(handle) {}
  std::optional<pthread_t> handle_;
};

}  // namespace kiln
