// What a thread keeps for its next launch.
#pragma once

#include <unistd.h>

#include <utility>

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

/// What a thread keeps, for a scope that may run code of the caller's, such as the handler of a signal, which may come
/// to the same scope again: it finds an empty one. Buffers are moved, not copied.
template <typename T>
class Borrowed {
 public:
  explicit Borrowed(T& kept) : kept_(kept), value_(std::exchange(kept, T())) {}
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() { kept_ = std::move(value_); }

  T& operator*() { return value_; }

 private:
  T& kept_;
  T value_;
};

}  // namespace kiln
