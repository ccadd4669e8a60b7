#include "core/interruption.h"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <new>

#include "core/fork_guard.h"
#include "core/thread_locals.h"
#include "core/thread_stack.h"

namespace kiln {
namespace {

InterruptionHook g_hook;

// Of the one thread that may be interrupted. The ticker reads the count of scopes that it has entered and left, and
// writes the attention word.
struct Watched {
  std::atomic<uint32_t> attention{0};
  std::atomic<uint64_t> transitions{0};  // odd: within a launch
  std::atomic<bool> ticker_sleeps{true};
};
Watched g_watched;
unsigned g_depth = 0;  // of that thread's scopes: a handler may launch kernels

struct Ticker {
  std::mutex mutex;
  std::condition_variable awake;
  bool has_started = false;
};
Ticker* g_ticker = new Ticker;  // never destroyed: the thread outlives static objects

// The child of a fork has no ticker, and whatever the parent's had locked.
[[maybe_unused]] const int g_interruption_registered = pthread_atfork(nullptr, nullptr, [] {
  g_ticker = new Ticker;
  g_watched.ticker_sleeps = true;
});

constexpr int kTickMs = kInterruptionCheckMs;
constexpr int kIdleTicks = 10;

void tick(Ticker& ticker) {
  uint64_t last = 0;
  int idle = 0;
  for (;;) {
    usleep(kTickMs * 1000);
    uint64_t now = g_watched.transitions.load(std::memory_order_relaxed);
    if (now == last && now % 2 == 1) g_watched.attention.store(1, std::memory_order_relaxed);
    idle = now == last && now % 2 == 0 ? idle + 1 : 0;
    last = now;
    if (idle < kIdleTicks) continue;
    g_watched.ticker_sleeps = true;
    // Who begins a launch writes the count and then reads ticker_sleeps, without a fence between the two. The fence is
    // this time.
    usleep(kTickMs * 1000);
    if (g_watched.transitions.load() == last) {
      std::unique_lock lock(ticker.mutex);
      ticker.awake.wait(lock, [] { return !g_watched.ticker_sleeps.load(); });
    }
    g_watched.ticker_sleeps = false;
    idle = 0;
  }
}

void wake_ticker() noexcept {
  ForkGuard guard;
  Ticker& ticker = *g_ticker;
  std::lock_guard lock(ticker.mutex);
  g_watched.ticker_sleeps = false;
  if (!ticker.has_started) {
    ticker.has_started = Thread::start(256 << 10, [&ticker] { tick(ticker); }).has_value();
    if (!ticker.has_started) g_watched.ticker_sleeps = true;  // the next launch tries again
  } else {
    ticker.awake.notify_one();
  }
}

}  // namespace

void set_interruption_hook(const InterruptionHook& hook) { g_hook = hook; }

bool can_be_interrupted() noexcept {
  KILN_STATIC_TLS thread_local signed char known = -1;
  if (known >= 0) return known != 0;
  if (!g_hook.check) return false;
  known = g_hook.serves_this_thread() ? 1 : 0;
  return known != 0;
}

bool check_interruption() noexcept { return can_be_interrupted() && g_hook.check(); }

InterruptibleScope::InterruptibleScope(LaunchStop& stop) noexcept : stop_(stop), is_watched_(can_be_interrupted()) {
  if (!is_watched_ || g_depth++ > 0) return;
  g_watched.transitions.store(g_watched.transitions.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (g_watched.ticker_sleeps.load(std::memory_order_relaxed)) wake_ticker();
}

InterruptibleScope::~InterruptibleScope() {
  if (!is_watched_ || --g_depth > 0) return;
  g_watched.transitions.store(g_watched.transitions.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  g_watched.attention.store(0, std::memory_order_relaxed);
}

const uint32_t* InterruptibleScope::poll_word() const noexcept {
  return is_watched_ ? reinterpret_cast<const uint32_t*>(&g_watched.attention) : stop_.word();
}

bool InterruptibleScope::attend() noexcept {
  if (stop_.is_stopped.load(std::memory_order_relaxed)) return true;
  if (!is_watched_) return false;
  g_watched.attention.store(0, std::memory_order_relaxed);
  if (!check_interruption()) return false;
  stop_.is_stopped.store(1, std::memory_order_relaxed);
  // All that this thread still runs of the launch ends at its next poll.
  g_watched.attention.store(1, std::memory_order_relaxed);
  return true;
}

}  // namespace kiln
