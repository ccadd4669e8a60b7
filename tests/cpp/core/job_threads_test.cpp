#include "core/job_threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/interruption.h"
#include "core/out_of_memory.h"
#include "core/thread_stack.h"

namespace kiln {
namespace {

using namespace std::chrono_literals;

constexpr size_t kAnyStack = 0;

// They are never destroyed: their threads wait for jobs until the process ends.
JobThreads& threads_with(size_t stack_bytes) {
  static auto& made = *new std::vector<JobThreads*>;  // where LeakSanitizer finds them
  return *made.emplace_back(new JobThreads(stack_bytes));
}

TEST(ThreadStack, IsAsLargeAsAskedFor) {
  for (size_t bytes : {size_t{64} << 10, size_t{1} << 20, size_t{64} << 20}) {
    size_t left = 0;
    std::optional<Thread> thread = Thread::start(bytes, [&] { left = stack_left(); });
    ASSERT_TRUE(thread);
    thread->join();
    // A sanitizer takes some, and gives more to small ones.
    EXPECT_GT(left, bytes / 8);
    EXPECT_LE(left, std::max(bytes, size_t{256} << 10));
  }
}

TEST(ThreadStack, ShrinksWithWhatIsUsed) {
  size_t before = stack_left();
  auto deeper = [&]() __attribute__((noinline)) {
    volatile char used[10'000];
    used[0] = 1;
    return stack_left() + static_cast<size_t>(used[0]) - 1;
  };
  size_t inside = deeper();
  EXPECT_LE(inside + 10'000, before);
}

TEST(ThreadStack, CannotBeStartedWithoutMemory) {
  EXPECT_FALSE(Thread::start(size_t{1} << 46, [] {}));
  EXPECT_FALSE(Thread::start(1, [] {}));
}

TEST(JobThreads, RunJobsOnAnotherThreadWithALargeStack) {
  JobThreads& threads = threads_with(size_t{64} << 20);
  pthread_t job{};
  size_t left = 0;
  threads.run([&] { job = pthread_self(), left = stack_left(); }, kAnyStack);
  EXPECT_FALSE(pthread_equal(job, pthread_self()));
  EXPECT_GT(left, size_t{60} << 20);
}

TEST(JobThreads, UseAThreadAgain) {
  JobThreads& threads = threads_with(size_t{8} << 20);
  std::set<pthread_t> seen;
  for (int i = 0; i < 20; ++i) threads.run([&] { seen.insert(pthread_self()); }, kAnyStack);
  EXPECT_EQ(seen.size(), 1u);
}

TEST(JobThreads, PassExceptionsOn) {
  JobThreads& threads = threads_with(size_t{8} << 20);
  EXPECT_THROW(threads.run([] { throw std::out_of_range("x"); }, kAnyStack), std::out_of_range);
  EXPECT_THROW(threads.run_abandonable([] { throw OutOfMemory("x"); }, kAnyStack), OutOfMemory);
  int done = 0;
  threads.run([&] { done = 1; }, kAnyStack);
  EXPECT_EQ(done, 1);
}

TEST(JobThreads, RunAsManyJobsAtOnceAsThereAreCallers) {
  JobThreads& threads = threads_with(size_t{8} << 20);
  std::atomic<int> inside{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 6; ++i)
    callers.emplace_back([&] {
      threads.run(
          [&] {
            ++inside;
            while (inside < 6) std::this_thread::sleep_for(1ms);
          },
          kAnyStack);
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(inside, 6);
}

TEST(JobThreads, MayRunJobsWithinJobs) {
  JobThreads& threads = threads_with(size_t{8} << 20);
  int depth = 0;
  threads.run([&] { threads.run([&] { threads.run([&] { depth = 3; }, kAnyStack); }, kAnyStack); }, kAnyStack);
  EXPECT_EQ(depth, 3);
}

TEST(JobThreads, LeaveAJobBehindAtItsDeadline) {
  JobThreads& threads = threads_with(size_t{8} << 20);
  auto go = std::make_shared<std::atomic<bool>>(false);
  auto ended = std::make_shared<std::atomic<bool>>(false);
  bool done = threads.run_abandonable(
      [go, ended] {
        while (!*go) std::this_thread::sleep_for(1ms);
        *ended = true;
      },
      kAnyStack, std::chrono::steady_clock::now() + 10ms);
  EXPECT_FALSE(done);
  EXPECT_FALSE(*ended);
  *go = true;
  while (!*ended) std::this_thread::sleep_for(1ms);
}

TEST(JobThreads, RunTheJobOnTheCallersStackWhereNoThreadCanBeStarted) {
  JobThreads& threads = threads_with(size_t{1} << 60);
  pthread_t job{};
  threads.run([&] { job = pthread_self(); }, /*enough=*/4096);
  EXPECT_TRUE(pthread_equal(job, pthread_self()));
  EXPECT_THROW(threads.run([] {}, /*enough=*/size_t{1} << 50), OutOfMemory);
  EXPECT_THROW(threads.run_abandonable([] {}, /*enough=*/size_t{1} << 50), OutOfMemory);
}

TEST(JobThreads, WorkInTheChildOfAFork) {
  int before = 0;
  JobThreads::compiling().run([&] { before = 1; }, kAnyStack);
  pid_t child = fork();
  if (child == 0) {
    int after = 0;
    JobThreads::compiling().run([&] { after = 1; }, kAnyStack);
    _exit(after == 1 && before == 1 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// ---- Interruption: a hook that serves one thread.

pthread_t g_interruptible;
std::atomic<int> g_checks{0};
std::atomic<bool> g_interrupt{false};

void install_hook() {
  g_interruptible = pthread_self();
  g_checks = 0;
  g_interrupt = false;
  set_interruption_hook({[] { return pthread_equal(pthread_self(), g_interruptible) != 0; },
                         [] {
                           ++g_checks;
                           return g_interrupt.load();
                         }});
}

// `function` in a thread that may be interrupted; whether a thread may is remembered.
template <typename Function>
void interruptibly(const Function& function) {
  std::thread([&] {
    install_hook();
    function();
    set_interruption_hook({});
  }).join();
}

uint32_t poll(const uint32_t* word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }

TEST(Interruption, ServesOneThread) {
  interruptibly([] {
    EXPECT_TRUE(can_be_interrupted());
    EXPECT_FALSE(check_interruption());
    EXPECT_EQ(g_checks, 1);
    g_interrupt = true;
    EXPECT_TRUE(check_interruption());
    std::thread([] {
      EXPECT_FALSE(can_be_interrupted());
      EXPECT_FALSE(check_interruption());
    }).join();
  });
}

TEST(Interruption, AsksALaunchForItsAttentionAgainAndAgain) {
  interruptibly([] {
    LaunchStop stop;
    InterruptibleScope scope(stop);
    for (int i = 0; i < 3; ++i) {
      while (poll(scope.poll_word()) == 0) std::this_thread::sleep_for(1ms);
      EXPECT_FALSE(scope.attend());
    }
    EXPECT_EQ(g_checks, 3);
    EXPECT_EQ(poll(stop.word()), 0u);
    g_interrupt = true;
    while (poll(scope.poll_word()) == 0) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(scope.attend());
    EXPECT_EQ(poll(stop.word()), 1u);
    EXPECT_EQ(poll(scope.poll_word()), 1u);
    // The handler is not run again.
    EXPECT_TRUE(scope.attend());
    EXPECT_EQ(g_checks, 4);
  });
}

TEST(Interruption, WakesForALaunchAfterALongWhile) {
  interruptibly([] {
    for (int i = 0; i < 2; ++i) {
      LaunchStop stop;
      InterruptibleScope scope(stop);
      while (poll(scope.poll_word()) == 0) std::this_thread::sleep_for(1ms);
      EXPECT_FALSE(scope.attend());
      if (i == 0) std::this_thread::sleep_for(2s);  // the ticker sleeps
    }
  });
}

TEST(Interruption, EndsALaunchOfAnotherThreadByItsStop) {
  LaunchStop stop;
  InterruptibleScope scope(stop);
  EXPECT_EQ(poll(scope.poll_word()), 0u);
  EXPECT_FALSE(scope.attend());
  stop.is_stopped = 1;
  EXPECT_EQ(poll(scope.poll_word()), 1u);
  EXPECT_TRUE(scope.attend());
}

TEST(Interruption, LeavesAJobBehind) {
  interruptibly([] {
    auto go = std::make_shared<std::atomic<bool>>(false);
    auto ended = std::make_shared<std::atomic<bool>>(false);
    g_interrupt = true;
    EXPECT_THROW(JobThreads::compiling().run_abandonable(
                     [go, ended] {
                       while (!*go) std::this_thread::sleep_for(1ms);
                       *ended = true;
                     },
                     kAnyStack),
                 Interrupted);
    EXPECT_FALSE(*ended);
    *go = true;
    while (!*ended) std::this_thread::sleep_for(1ms);
  });
}

}  // namespace
}  // namespace kiln
