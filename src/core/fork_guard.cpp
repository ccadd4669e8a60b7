#include "core/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>

#include "core/thread_locals.h"

namespace kiln {
namespace {

// Threads count themselves in different places, so that they do not wait for one another's cache lines.
struct alignas(64) Count {
  std::atomic<unsigned> inside{0};
};
std::array<Count, 16> g_counts;
std::atomic<int> g_forking{0};
std::mutex g_fork_mutex;  // one `fork` at a time
std::atomic<size_t> g_next_count{0};

KILN_STATIC_TLS thread_local Count* t_count = nullptr;
KILN_STATIC_TLS thread_local unsigned t_depth = 0;

Count& own_count() {
  if (!t_count) t_count = &g_counts[g_next_count++ % g_counts.size()];
  return *t_count;
}

// The thread that forks may be in a scope itself.
unsigned own_share(const Count& count) { return t_depth > 0 && &count == t_count ? 1 : 0; }

void before_fork() {
  g_fork_mutex.lock();
  g_forking = 1;
  for (Count& count : g_counts)
    while (count.inside != own_share(count)) usleep(20);
}

void go_on() {
  g_forking = 0;
  g_forking.notify_all();
}

void after_fork_in_parent() {
  go_on();
  g_fork_mutex.unlock();
}

void after_fork_in_child() {
  // Of threads that had counted themselves and were about to take it back.
  for (Count& count : g_counts) count.inside = own_share(count);
  go_on();
  new (&g_fork_mutex) std::mutex;
}

[[maybe_unused]] const int g_registered = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);

}  // namespace

ForkGuard::ForkGuard() {
  if (t_depth++ > 0) return;
  Count& count = own_count();
  // Either this thread sees that one forks, or that one sees this thread.
  while (++count.inside, g_forking) {
    --count.inside;
    g_forking.wait(1);
  }
}

ForkGuard::~ForkGuard() {
  if (--t_depth == 0) --t_count->inside;
}

}  // namespace kiln
