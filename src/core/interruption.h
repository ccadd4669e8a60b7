// Ends a launch or a compilation when the program is interrupted (Ctrl-C).
//
// A signal's handler runs in the middle of whatever the main thread does, and in Python only notes the signal: Python
// runs the program's own handler later, on the main thread, between two instructions of the interpreter. While that
// thread is in Kiln there are none. So Kiln calls Python's check now and then (a hook: nothing here knows Python), and
// what the handler raises ends the launch.
//
// Compiled code cannot call the hook at each turn of a loop. It reads a word of memory instead, which is 0 as a rule. A
// thread of Kiln's own, the ticker, sets it to 1 once the main thread has been in one launch for a while; the code then
// calls back, and the hook is called.
//
// Rejected: a signal handler of Kiln's (programs install their own, and a handler that does not raise must not end a
// launch); running launches on other threads than the main one, which waits (10 us for each launch).
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

namespace kiln {

/// A launch or compilation has ended because the hook said so. In Python, it becomes the exception that the signal's
/// handler has raised.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

struct InterruptionHook {
  /// Whether check() can be called on the calling thread; the same at each call from one thread.
  bool (*serves_this_thread)() = nullptr;
  /// Runs pending signal handlers, which may launch kernels. A child that a handler forks within a launch does not come
  /// back from it: the launch's other threads are the parent's. True where what Kiln does for this thread is to end;
  /// whoever catches Interrupted then finds the handler's exception where the hook has left it. Throws nothing.
  bool (*check)() = nullptr;
};

/// Called once, before anything is launched.
void set_interruption_hook(const InterruptionHook& hook);

/// Whether check_interruption() does something on this thread.
bool can_be_interrupted() noexcept;

/// True where what Kiln does for this thread is to end. False where there is no hook for it.
bool check_interruption() noexcept;

/// How long a thread that may be interrupted waits before it calls check_interruption() again.
/// A check may wait for the interpreter's lock, which other threads hold for 5 ms at a time.
inline constexpr int kInterruptionCheckMs = 100;

// Whether a launch is to end: what all of its threads share.
struct LaunchStop {
  std::atomic<uint32_t> is_stopped{0};

  /// What compiled code polls on the launch's other threads.
  const uint32_t* word() const noexcept { return reinterpret_cast<const uint32_t*>(&is_stopped); }
};

/// For the time of a launch on this thread.
class InterruptibleScope {
 public:
  /// `stop` is the launch's, and outlives the scope.
  explicit InterruptibleScope(LaunchStop& stop) noexcept;
  ~InterruptibleScope();
  InterruptibleScope(const InterruptibleScope&) = delete;
  InterruptibleScope& operator=(const InterruptibleScope&) = delete;

  /// The word that this thread polls: where it is not 0, attend() is to be called.
  const uint32_t* poll_word() const noexcept;

  /// Called by this thread when its word is not 0, or now and then. Whether the launch is to end.
  bool attend() noexcept;

  bool is_watched() const noexcept { return is_watched_; }

 private:
  LaunchStop& stop_;
  const bool is_watched_;
};

}  // namespace kiln
