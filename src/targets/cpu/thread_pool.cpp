#include "targets/cpu/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "core/fork_guard.h"
#include "core/interruption.h"
#include "core/job_threads.h"
#include "core/settings.h"

namespace kiln {
namespace {

using Clock = std::chrono::steady_clock;

// How long no piece may end before threads are added, and up to how many.
constexpr Clock::duration kPatience = std::chrono::milliseconds(20);
constexpr Clock::duration kMostPatience = 10 * kPatience;
constexpr size_t kMaxHelpers = 2048;

}  // namespace

struct alignas(64) Share {  // a cache line
  std::atomic<uint64_t> next;
  uint64_t end;

  bool has_more() const { return next.load(std::memory_order_relaxed) < end; }
};

struct Job {
  ThreadPool::Work work;
  const ThreadPool::Participant* participant;
  Share only;  // most jobs have no others
  std::vector<Share> several;
  std::span<Share> shares;
  unsigned participants = 0;  // running now; guarded by the pool's mutex
  unsigned wanted = 0;        // more workers that may join; likewise
  std::exception_ptr error;   // likewise

  // Of pieces that may wait.
  std::atomic<uint64_t> ended{0};
  // The watcher's.
  uint64_t ended_when_watched = 0;
  Clock::time_point moved_at = Clock::now();  // when a piece was last seen to have ended
  Clock::time_point grew_at = moved_at;
  Clock::duration patience = kPatience;

  Job(const ThreadPool::Work& wanted_work, const ThreadPool::Participant& function, size_t participants)
      : work(wanted_work), participant(&function), several(participants > 1 ? participants : 0) {
    shares = participants > 1 ? std::span(several) : std::span(&only, 1);
    uint64_t each = work.pieces / participants, more = work.pieces % participants, begin = 0;
    for (size_t i = 0; i < participants; ++i) {
      shares[i].next.store(begin, std::memory_order_relaxed);
      begin += each + (i < more ? 1 : 0);
      shares[i].end = begin;
    }
  }

  bool has_more() const { return std::any_of(shares.begin(), shares.end(), std::mem_fn(&Share::has_more)); }
};

namespace {

std::atomic<ThreadPool*> g_pool{nullptr};
std::mutex g_pool_mutex;
// The workers stay behind, and whatever they were doing.
[[maybe_unused]] const int g_registered = pthread_atfork(nullptr, nullptr, [] { g_pool.store(nullptr); });

// Whether there was room for one more thread.
template <typename Function>
bool start_thread(std::vector<Thread>& threads, Function&& function) {
  try {
    threads.reserve(threads.size() + 1);
    std::optional<Thread> thread = Thread::start(kKernelStackBytes, std::forward<Function>(function));
    if (thread) threads.push_back(std::move(*thread));
    return thread.has_value();
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

unsigned quota_threads(const std::string& control_groups) {
  double quota = 0, period = 0;
  if (std::ifstream v2(control_groups + "/cpu.max"); v2) {
    std::string limit;
    v2 >> limit >> period;
    if (limit != "max" && !limit.empty()) quota = std::strtod(limit.c_str(), nullptr);
  } else {
    std::ifstream(control_groups + "/cpu/cpu.cfs_quota_us") >> quota;
    std::ifstream(control_groups + "/cpu/cpu.cfs_period_us") >> period;
  }
  if (quota <= 0 || period <= 0) return 0;
  return std::max(1u, static_cast<unsigned>(quota / period + 0.999));
}

unsigned usable_threads() {
  if (int wanted = settings().cpu_threads; wanted > 0) return static_cast<unsigned>(wanted);
  cpu_set_t mask;
  unsigned threads = sched_getaffinity(0, sizeof mask, &mask) == 0 ? static_cast<unsigned>(CPU_COUNT(&mask))
                                                                   : std::thread::hardware_concurrency();
  if (unsigned quota = quota_threads("/sys/fs/cgroup")) threads = std::min(threads, quota);
  return std::max(1u, threads);
}

ThreadPool::Claims::Claims(Job& job, size_t participant) : job_(&job), share_(participant % job.shares.size()) {}

bool ThreadPool::Claims::next(uint64_t& begin, uint64_t& end) {
  uint64_t count = job_->work.pieces_per_claim;
  if (job_->work.pieces_may_wait) {
    if (has_piece_) job_->ended.fetch_add(1, std::memory_order_relaxed);
    has_piece_ = true;
  }
  for (size_t tried = 0; tried < job_->shares.size(); ++tried) {
    Share& share = job_->shares[share_];
    if (share.has_more()) {
      begin = share.next.fetch_add(count, std::memory_order_relaxed);
      if (begin < share.end) {
        end = begin + std::min(count, share.end - begin);
        return true;
      }
    }
    share_ = (share_ + 1) % job_->shares.size();
  }
  return false;
}

void ThreadPool::Claims::stop() {
  for (Share& share : job_->shares) share.next.store(share.end, std::memory_order_relaxed);
}

ThreadPool& ThreadPool::shared() {
  if (ThreadPool* pool = g_pool.load(std::memory_order_acquire)) return *pool;
  ForkGuard guard;
  std::lock_guard lock(g_pool_mutex);
  if (!g_pool.load()) {
    // Never destroyed: a launch may still run when static objects are.
    g_pool.store(new ThreadPool(usable_threads()), std::memory_order_release);
  }
  return *g_pool.load();
}

ThreadPool::ThreadPool(unsigned threads) : threads_(std::max(1u, threads)) {
  unsigned wanted = threads_ - 1;
  workers_.reserve(wanted);
  // The first participant of a job is its caller.
  while (workers_.size() < wanted &&
         start_thread(workers_, [this, participant = workers_.size() + 1] { worker_loop(participant); })) {
  }
  threads_ = static_cast<unsigned>(workers_.size()) + 1;
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_arrived_.notify_all();
  watch_.notify_all();
  for (Thread& worker : workers_) worker.join();
  for (Thread& watcher : watcher_) watcher.join();
  for (Thread& helper : helpers_) helper.join();
}

void ThreadPool::run(const Work& work, const Participant& participant) {
  const uint64_t per_claim = std::max<uint64_t>(1, work.pieces_per_claim);
  const uint64_t claims = work.pieces / per_claim + (work.pieces % per_claim != 0);
  const auto wanted = static_cast<unsigned>(std::min<uint64_t>(threads_ - 1, claims > 0 ? claims - 1 : 0));
  // Pieces that may wait are begun in their order.
  Job job({work.pieces, per_claim, work.pieces_may_wait, nullptr}, participant,
          work.pieces_may_wait ? 1 : size_t{wanted} + 1);
  job.wanted = wanted;
  bool watched = work.pieces_may_wait && claims > 1;
  if (wanted == 0 && !watched) {
    Claims mine(job, 0);
    participant(mine);
    return;
  }
  std::list<Job*>::iterator entry;
  {
    std::lock_guard lock(mutex_);
    if (watched && watcher_.empty()) watched = start_thread(watcher_, [this] { watch_loop(); });
    entry = jobs_.insert(jobs_.end(), &job);
    job.participants = 1;
    if (watched && watched_jobs_++ == 0) watch_.notify_one();
  }
  if (wanted == 1)
    work_arrived_.notify_one();
  else if (wanted > 1)
    work_arrived_.notify_all();
  take_part(job, 0);

  std::unique_lock lock(mutex_);
  jobs_.erase(entry);  // nobody joins any more
  if (watched) --watched_jobs_;
  --job.participants;
  auto is_done = [&] { return job.participants == 0; };
  if (!work.while_waiting) work_left_.wait(lock, is_done);
  while (!work_left_.wait_for(lock, std::chrono::milliseconds(kInterruptionCheckMs), is_done)) {
    lock.unlock();
    work.while_waiting();
    lock.lock();
  }
  if (job.error) std::rethrow_exception(job.error);
}

void ThreadPool::take_part(Job& job, size_t participant) {
  Claims claims(job, participant);
  try {
    (*job.participant)(claims);
  } catch (...) {
    claims.stop();
    std::lock_guard lock(mutex_);
    if (!job.error) job.error = std::current_exception();
  }
}

void ThreadPool::worker_loop(size_t participant) {
  std::unique_lock lock(mutex_);
  for (;;) {
    Job* job = nullptr;
    for (Job* candidate : jobs_)
      if (candidate->wanted > 0 && candidate->has_more()) {
        job = candidate;
        break;
      }
    if (!job) {
      if (stopping_) return;
      work_arrived_.wait(lock);
      continue;
    }
    --job->wanted;
    ++job->participants;
    lock.unlock();
    take_part(*job, participant);
    lock.lock();
    if (--job->participants == 0) work_left_.notify_all();
  }
}

// Adds threads to jobs whose pieces may wait for one another and of which none has ended for a while.
void ThreadPool::watch_loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (watched_jobs_ == 0) {
      for (Thread& helper : helpers_) {
        lock.unlock();
        helper.join();
        lock.lock();
      }
      helpers_.clear();
      watch_.wait(lock, [&] { return stopping_ || watched_jobs_ > 0; });
      continue;
    }
    watch_.wait_for(lock, kPatience);
    for (Job* job : jobs_)
      if (job->work.pieces_may_wait) add_helpers(*job);
  }
}

// As many threads as the pool has, each time: the pieces may just as well be long, and what the threads have to share
// the processors with makes them longer. So a piece that ends also says how long others may take.
void ThreadPool::add_helpers(Job& job) {
  Clock::time_point now = Clock::now();
  uint64_t ended = job.ended.load(std::memory_order_relaxed);
  if (ended != job.ended_when_watched) {
    job.ended_when_watched = ended;
    job.patience = std::clamp(2 * (now - job.moved_at), job.patience, kMostPatience);
    job.moved_at = now;
    return;
  }
  if (now - std::max(job.moved_at, job.grew_at) < job.patience) return;
  job.grew_at = now;
  const Share& all = job.shares.front();
  uint64_t left = all.end - std::min(all.end, all.next.load(std::memory_order_relaxed));
  for (uint64_t i = 0; i < std::min<uint64_t>(threads_, left) && helpers_.size() < kMaxHelpers; ++i) {
    if (!start_thread(helpers_, [this, &job] {
          take_part(job, 0);
          std::lock_guard guard(mutex_);
          if (--job.participants == 0) work_left_.notify_all();
        }))
      return;
    ++job.participants;
  }
}

}  // namespace kiln
