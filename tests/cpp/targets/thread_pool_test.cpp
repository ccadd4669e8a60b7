#include "targets/cpu/thread_pool.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <latch>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "sanitizers.h"

namespace kiln {
namespace {

// Runs `pieces` pieces and counts how often each was claimed.
std::vector<int> claims_of(ThreadPool& pool, uint64_t pieces, uint64_t pieces_per_claim = 1) {
  std::vector<std::atomic<int>> claimed(pieces);
  pool.run({pieces, pieces_per_claim, false}, [&](ThreadPool::Claims& claims) {
    uint64_t begin, end;
    while (claims.next(begin, end))
      for (uint64_t i = begin; i < end; ++i) ++claimed[i];
  });
  return {claimed.begin(), claimed.end()};
}

void expect_each_once(const std::vector<int>& claimed) {
  for (size_t i = 0; i < claimed.size(); ++i) ASSERT_EQ(claimed[i], 1) << i;
}

TEST(ThreadPool, RunsEveryPieceExactlyOnce) {
  for (unsigned threads : {1u, 2u, 3u, 8u}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (uint64_t pieces : {0, 1, 2, 7, 100, 10000})
      for (uint64_t per_claim : {0, 1, 3, 20000}) expect_each_once(claims_of(pool, pieces, per_claim));
  }
}

TEST(ThreadPool, HasOneThreadAtLeast) {
  ThreadPool pool(0);
  EXPECT_EQ(pool.threads(), 1u);
  expect_each_once(claims_of(pool, 10));
}

TEST(ThreadPool, LetsTheCallerTakePart) {
  ThreadPool pool(4);
  // The only participant of a single piece is the caller.
  std::thread::id who;
  pool.run({1, 1, false}, [&](ThreadPool::Claims& claims) {
    uint64_t begin, end;
    if (claims.next(begin, end)) who = std::this_thread::get_id();
  });
  EXPECT_EQ(who, std::this_thread::get_id());
}

TEST(ThreadPool, UsesItsWorkers) {
  ThreadPool pool(4);
  // Each of four pieces waits until all four have begun, so four threads run them.
  std::latch begun(4);
  std::mutex mutex;
  std::set<std::thread::id> who;
  pool.run({4, 1, false}, [&](ThreadPool::Claims& claims) {
    uint64_t begin, end;
    while (claims.next(begin, end)) {
      begun.arrive_and_wait();
      std::lock_guard lock(mutex);
      who.insert(std::this_thread::get_id());
    }
  });
  EXPECT_EQ(who.size(), 4u);
  EXPECT_TRUE(who.contains(std::this_thread::get_id()));
}

// What four participants claim first, of 100 pieces.
std::set<uint64_t> first_claims(bool pieces_may_wait) {
  ThreadPool pool(4);
  std::latch begun(4);
  std::mutex mutex;
  std::set<uint64_t> firsts;
  pool.run({100, 1, pieces_may_wait}, [&](ThreadPool::Claims& claims) {
    uint64_t begin, end;
    if (!claims.next(begin, end)) return;
    {
      std::lock_guard lock(mutex);
      firsts.insert(begin);
    }
    begun.arrive_and_wait();
    while (claims.next(begin, end)) {
    }
  });
  return firsts;
}

TEST(ThreadPool, GivesEachParticipantAShareOfNeighbouringPieces) {
  EXPECT_EQ(first_claims(false), (std::set<uint64_t>{0, 25, 50, 75}));
}

TEST(ThreadPool, BeginsPiecesThatMayWaitInTheirOrder) {
  EXPECT_EQ(first_claims(true), (std::set<uint64_t>{0, 1, 2, 3}));
}

TEST(ThreadPool, LetsParticipantsRunOthersShares) {
  ThreadPool pool(4);
  std::atomic<int> run = 0;
  pool.run({100, 7, false}, [&](ThreadPool::Claims& claims) {
    uint64_t begin, end;
    while (claims.next(begin, end)) {
      // The first piece of the caller's share waits for all the others, but for those claimed with it.
      if (begin == 0)
        while (run < 93) std::this_thread::yield();
      run += static_cast<int>(end - begin);
    }
  });
  EXPECT_EQ(run, 100);
}

TEST(ThreadPool, RunsWhatIsSubmittedFromWithinAPiece) {
  for (unsigned threads : {1u, 3u}) {
    ThreadPool pool(threads);
    std::atomic<int> total = 0;
    auto run_level = [&](auto& self, int depth) -> void {
      pool.run({5, 1, false}, [&](ThreadPool::Claims& claims) {
        uint64_t begin, end;
        while (claims.next(begin, end)) {
          if (depth == 0)
            ++total;
          else
            self(self, depth - 1);
        }
      });
    };
    run_level(run_level, 3);
    EXPECT_EQ(total, 5 * 5 * 5 * 5);
  }
}

TEST(ThreadPool, RunsWhatSeveralThreadsSubmitAtOnce) {
  ThreadPool pool(3);
  constexpr int kSubmitters = 6;
  std::latch start(kSubmitters);
  std::vector<std::thread> submitters;
  for (int s = 0; s < kSubmitters; ++s)
    submitters.emplace_back([&, s] {
      start.arrive_and_wait();
      for (int round = 0; round < 50; ++round) expect_each_once(claims_of(pool, 10 + s * 7 + round));
    });
  for (std::thread& submitter : submitters) submitter.join();
}

TEST(ThreadPool, StopsClaimingWhenToldTo) {
  ThreadPool pool(1);
  int run = 0;
  pool.run({1000, 1, false}, [&](ThreadPool::Claims& claims) {
    uint64_t begin, end;
    while (claims.next(begin, end))
      if (++run == 3) claims.stop();
  });
  EXPECT_EQ(run, 3);
}

TEST(ThreadPool, RethrowsWhatAPieceThrew) {
  for (unsigned threads : {1u, 4u}) {
    ThreadPool pool(threads);
    for (uint64_t bad : {0, 57, 99}) {
      try {
        pool.run({100, 1, false}, [&](ThreadPool::Claims& claims) {
          uint64_t begin, end;
          while (claims.next(begin, end))
            if (begin == bad) throw std::out_of_range("piece " + std::to_string(begin));
        });
        FAIL();
      } catch (const std::out_of_range& error) {
        EXPECT_EQ(error.what(), "piece " + std::to_string(bad));
      }
      expect_each_once(claims_of(pool, 100));
    }
  }
}

TEST(ThreadPool, RethrowsOneOfSeveralExceptions) {
  ThreadPool pool(4);
  EXPECT_THROW(pool.run({100, 1, false},
                        [&](ThreadPool::Claims& claims) {
                          uint64_t begin, end;
                          while (claims.next(begin, end)) throw std::runtime_error("all of them");
                        }),
               std::runtime_error);
  expect_each_once(claims_of(pool, 100));
}

// Each piece waits until all have begun: with fewer threads than pieces somebody has to add threads.
TEST(ThreadPool, LetsPiecesWaitForOneAnother) {
  for (unsigned threads : {1u, 2u}) {
    ThreadPool pool(threads);
    constexpr uint64_t kPieces = 24;
    for (int round = 0; round < 2; ++round) {
      std::latch begun(kPieces);
      std::atomic<uint64_t> ended = 0;
      pool.run({kPieces, 1, true}, [&](ThreadPool::Claims& claims) {
        uint64_t begin, end;
        while (claims.next(begin, end)) {
          begun.arrive_and_wait();
          ++ended;
        }
      });
      EXPECT_EQ(ended, kPieces);
    }
    expect_each_once(claims_of(pool, 100));
  }
}

TEST(ThreadPool, LetsPiecesOfSeveralJobsWait) {
  ThreadPool pool(2);
  std::vector<std::thread> submitters;
  std::atomic<int> ended = 0;
  for (int s = 0; s < 3; ++s)
    submitters.emplace_back([&] {
      std::latch begun(6);
      pool.run({6, 1, true}, [&](ThreadPool::Claims& claims) {
        uint64_t begin, end;
        while (claims.next(begin, end)) {
          begun.arrive_and_wait();
          ++ended;
        }
      });
    });
  for (std::thread& submitter : submitters) submitter.join();
  EXPECT_EQ(ended, 18);
}

TEST(ThreadPool, RethrowsWhatAPieceThrewThatOthersCouldWaitFor) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.run({8, 1, true},
                        [&](ThreadPool::Claims& claims) {
                          uint64_t begin, end;
                          while (claims.next(begin, end))
                            if (begin == 5) throw std::runtime_error("one");
                        }),
               std::runtime_error);
  expect_each_once(claims_of(pool, 100));
}

TEST(ThreadPool, OfTheProcessWorksInAChild) {
  expect_each_once(claims_of(ThreadPool::shared(), 1000));
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // The workers stayed behind; the child's pool is another one.
    std::vector<int> claimed = claims_of(ThreadPool::shared(), 1000);
    bool each_once = std::ranges::all_of(claimed, [](int count) { return count == 1; });
    _exit(each_once ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  expect_each_once(claims_of(ThreadPool::shared(), 1000));
}

// A program may block a signal in its threads to wait for it in one of them.
TEST(ThreadPool, LeavesSignalsToTheProgramsThreads) {
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ThreadPool pool(4);
    // Threads are added while one piece waits for another.
    std::atomic<int> begun = 0;
    pool.run({8, 1, true}, [&](ThreadPool::Claims& claims) {
      uint64_t begin, end;
      while (claims.next(begin, end))
        for (++begun; begun < 8;) std::this_thread::yield();
    });
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    bool all_came = true;
    for (int i = 0; i < 100; ++i) {
      kill(getpid(), SIGUSR1);  // ends the process in a thread that does not block it
      timespec patience{10, 0};
      all_came = all_came && sigtimedwait(&signals, nullptr, &patience) == SIGUSR1;
    }
    _exit(all_came ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ThreadPool, OfTheProcessHasAsManyThreadsAsMayBeUsed) {
  EXPECT_GE(usable_threads(), 1u);
  EXPECT_EQ(ThreadPool::shared().threads(), usable_threads());
  EXPECT_EQ(&ThreadPool::shared(), &ThreadPool::shared());
}

class ControlGroup : public testing::Test {
 protected:
  ControlGroup() : folder_(std::filesystem::path(testing::TempDir()) / std::to_string(getpid())) {
    std::filesystem::create_directories(folder_ / "cpu");
  }
  ~ControlGroup() override { std::filesystem::remove_all(folder_); }

  void write(const char* file, const char* text) { std::ofstream(folder_ / file) << text; }
  unsigned threads() const { return quota_threads(folder_.string()); }

 private:
  std::filesystem::path folder_;
};

TEST_F(ControlGroup, OfVersion2GrantsWholeProcessorsRoundedUp) {
  const std::pair<const char*, unsigned> cases[] = {{"max 100000\n", 0},     {"200000 100000\n", 2},
                                                    {"250000 100000\n", 3},  {"10000 100000\n", 1},
                                                    {"800000 50000\n", 16},  {"", 0},
                                                    {"nonsense 100000\n", 0}};
  for (auto [text, expected] : cases) {
    write("cpu.max", text);
    EXPECT_EQ(threads(), expected) << text;
  }
}

TEST_F(ControlGroup, OfVersion1GrantsWholeProcessorsRoundedUp) {
  EXPECT_EQ(threads(), 0u);  // there are no files
  const std::tuple<const char*, const char*, unsigned> cases[] = {
      {"-1\n", "100000\n", 0}, {"150000\n", "100000\n", 2}, {"400000\n", "100000\n", 4}, {"400000\n", "", 0}};
  for (auto [quota, period, expected] : cases) {
    write("cpu/cpu.cfs_quota_us", quota);
    write("cpu/cpu.cfs_period_us", period);
    EXPECT_EQ(threads(), expected) << quota << period;
  }
}

TEST(ThreadPool, GoesOnWithTheThreadsThatThereAre) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs more memory than is left here";
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Room for a few stacks.
    std::ifstream statm("/proc/self/statm");
    uint64_t pages = 0;
    statm >> pages;
    rlim_t bytes = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{64} << 20);
    rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    ThreadPool pool(200);
    if (pool.threads() >= 200) _exit(3);
    for (bool may_wait : {false, true}) {
      std::atomic<int> ended = 0;
      pool.run({1000, 1, may_wait}, [&](ThreadPool::Claims& claims) {
        uint64_t begin, end;
        while (claims.next(begin, end)) ++ended;
      });
      if (ended != 1000) _exit(4);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Pieces that take long look like pieces that wait until the first of them ends.
TEST(ThreadPool, AddsFewThreadsWherePiecesEnd) {
  ThreadPool pool(2);
  std::mutex mutex;
  std::set<std::thread::id> who;
  pool.run({60, 1, true}, [&](ThreadPool::Claims& claims) {
    uint64_t begin, end;
    while (claims.next(begin, end)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      std::lock_guard lock(mutex);
      who.insert(std::this_thread::get_id());
    }
  });
  EXPECT_LE(who.size(), 16u);
}

}  // namespace
}  // namespace kiln
