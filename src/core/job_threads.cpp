#include "core/job_threads.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/interruption.h"
#include "core/out_of_memory.h"
#include "core/thread_stack.h"

namespace kiln {
namespace {

// Virtual memory, of which a compilation touches some hundred KiB.
constexpr size_t kCompilerStackBytes = size_t{256} << 20;
constexpr size_t kLeastStackBytes = size_t{4} << 20;

std::atomic<JobThreads*> g_compiling{nullptr}, g_launching{nullptr};
// The threads stay in the parent.
[[maybe_unused]] const int g_job_threads_registered = pthread_atfork(nullptr, nullptr, [] {
  g_compiling = nullptr;
  g_launching = nullptr;
});

}  // namespace

struct JobThreads::Task {
  std::function<void()> job;
  std::mutex mutex;
  std::condition_variable ended;
  bool is_done = false;
  std::exception_ptr error;
};

struct JobThreads::Worker {
  std::mutex mutex;
  std::condition_variable arrived;
  std::shared_ptr<Task> task;
};

// So that a thread that becomes idle allocates nothing.
JobThreads::JobThreads(size_t stack_bytes) : stack_bytes_(stack_bytes) { idle_.reserve(kMostIdle); }

// What it returns is never destroyed: jobs may still run when static objects are.
JobThreads& JobThreads::shared(std::atomic<JobThreads*>& instance, size_t stack_bytes) {
  if (JobThreads* made = instance.load(std::memory_order_acquire)) return *made;
  auto* made = new JobThreads(stack_bytes);
  JobThreads* first = nullptr;
  if (instance.compare_exchange_strong(first, made)) return *made;
  delete made;  // another thread was first
  return *first;
}

JobThreads& JobThreads::compiling() { return shared(g_compiling, kCompilerStackBytes); }
JobThreads& JobThreads::launching() { return shared(g_launching, kKernelStackBytes); }

std::shared_ptr<JobThreads::Task> JobThreads::submit(const std::function<void()>& job) {
  auto task = std::make_shared<Task>();
  task->job = job;
  std::shared_ptr<Worker> worker;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      worker = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (worker) {
    std::lock_guard lock(worker->mutex);
    worker->task = task;
    worker->arrived.notify_one();
    return task;
  }
  worker = std::make_shared<Worker>();
  worker->task = task;
  for (size_t bytes = stack_bytes_; bytes >= std::max(kLeastStackBytes, stack_bytes_ / 16); bytes /= 4)
    if (Thread::start(bytes, [this, worker] { work(worker); })) return task;
  return nullptr;
}

void JobThreads::work(const std::shared_ptr<Worker>& worker) {
  for (;;) {
    std::shared_ptr<Task> task;
    {
      std::unique_lock lock(worker->mutex);
      worker->arrived.wait(lock, [&] { return worker->task != nullptr; });
      task = std::exchange(worker->task, nullptr);
    }
    std::exception_ptr error;
    try {
      task->job();
    } catch (...) {
      error = std::current_exception();
    }
    // What the job owns goes on this thread, and before its caller goes on.
    task->job = nullptr;
    bool stays;
    {
      std::lock_guard lock(mutex_);
      stays = idle_.size() < kMostIdle;
      if (stays) idle_.push_back(worker);
    }
    {
      std::lock_guard lock(task->mutex);
      task->error = std::move(error);
      task->is_done = true;
      task->ended.notify_all();
    }
    if (!stays) return;
  }
}

void JobThreads::run(const std::function<void()>& job, size_t enough, const std::function<void()>& while_waiting) {
  std::shared_ptr<Task> task = submit(job);
  if (!task) {
    if (stack_left() < enough) throw OutOfMemory("There is no memory for another thread.");
    return job();
  }
  std::unique_lock lock(task->mutex);
  auto is_done = [&] { return task->is_done; };
  if (!while_waiting) task->ended.wait(lock, is_done);
  while (!task->ended.wait_for(lock, std::chrono::milliseconds(kInterruptionCheckMs), is_done)) {
    lock.unlock();
    while_waiting();
    lock.lock();
  }
  if (task->error) std::rethrow_exception(std::exchange(task->error, nullptr));
}

bool JobThreads::run_abandonable(const std::function<void()>& job, size_t enough,
                                 std::optional<std::chrono::steady_clock::time_point> deadline) {
  std::shared_ptr<Task> task = submit(job);
  if (!task) {
    if (stack_left() < enough) throw OutOfMemory("There is no memory for another thread.");
    job();
    return true;
  }
  const bool is_checked = can_be_interrupted();
  const pid_t process = getpid();
  std::unique_lock lock(task->mutex);
  while (!task->is_done) {
    if (deadline && std::chrono::steady_clock::now() >= *deadline) return false;
    if (!is_checked && !deadline) {
      task->ended.wait(lock);
      continue;
    }
    if (task->ended.wait_for(lock, std::chrono::milliseconds(kInterruptionCheckMs), [&] { return task->is_done; }))
      break;
    if (!is_checked) continue;
    lock.unlock();
    if (check_interruption()) throw Interrupted();
    // A signal's handler may have forked. The child has no thread that runs the job.
    if (getpid() != process) return shared(g_compiling, stack_bytes_).run_abandonable(job, enough, deadline);
    lock.lock();
  }
  if (task->error) std::rethrow_exception(std::exchange(task->error, nullptr));
  return true;
}

}  // namespace kiln
