#include "core/thread_stack.h"

#include <signal.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "core/thread_locals.h"

namespace kiln {
namespace {

struct Bounds {
  uintptr_t low = 0, bytes = 0;
  bool known = false;
};

KILN_STATIC_TLS thread_local Bounds t_bounds;

void find_bounds(Bounds& bounds) noexcept {
  bounds.known = true;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* low = nullptr;
  size_t bytes = 0;
  if (pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
    bounds.low = reinterpret_cast<uintptr_t>(low);
    bounds.bytes = bytes;
  }
  pthread_attr_destroy(&attributes);
}

// All signals but a thread's own, for the time of a scope. A thread that is created in it begins like that.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t signals;
    sigfillset(&signals);
    for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) sigdelset(&signals, own);
    pthread_sigmask(SIG_SETMASK, &signals, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

void* run_function(void* argument) {
  // An exception is thrown with variables of the thread, which cannot be had any more when one says that memory is
  // gone.
  if (has_memory_for_thread_locals()) static_cast<void>(std::uncaught_exceptions());
  std::unique_ptr<std::function<void()>> function(static_cast<std::function<void()>*>(argument));
  (*function)();
  return nullptr;
}

}  // namespace

size_t stack_left() noexcept {
  if (!t_bounds.known) find_bounds(t_bounds);
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  uintptr_t left = here - t_bounds.low;
  return left < t_bounds.bytes ? left : 0;
}

std::optional<Thread> Thread::start(size_t stack_bytes, std::function<void()> function) noexcept {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return std::nullopt;
  pthread_t handle;
  bool started = false;
  try {
    auto owned = std::make_unique<std::function<void()>>(std::move(function));
    BlockedSignals blocked;
    if (pthread_attr_setstacksize(&attributes, stack_bytes) == 0 &&
        pthread_create(&handle, &attributes, run_function, owned.get()) == 0) {
      static_cast<void>(owned.release());
      started = true;
    }
  } catch (const std::bad_alloc&) {
  }
  pthread_attr_destroy(&attributes);
  if (!started) return std::nullopt;
  return Thread(handle);
}

Thread::Thread(Thread&& other) noexcept : handle_(std::exchange(other.handle_, std::nullopt)) {}

Thread::~Thread() {
  if (handle_) pthread_detach(*handle_);
}

void Thread::join() { pthread_join(std::exchange(handle_, std::nullopt).value(), nullptr); }

}  // namespace kiln
