// What a thread keeps for its next launch.
#pragma once

#include <unistd.h>

namespace kiln {

/// One T for each thread, when declared `thread_local`; made when it is first asked for. Objects that are destroyed
/// when the process ends may launch kernels, from the thread whose own are gone by then: that thread's is never
/// destroyed.
template <typename T>
class ThreadState {
 public:
  ThreadState() = default;
  ThreadState(const ThreadState&) = delete;
  ThreadState& operator=(const ThreadState&) = delete;
  ~ThreadState() {
    if (gettid() != getpid()) delete value_;
  }

  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  T* const value_ = new T();
};

}  // namespace kiln
