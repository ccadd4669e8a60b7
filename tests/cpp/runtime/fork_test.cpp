// docs/language.md 6.2: a child that was forked while other threads compiled and launched can do both.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/fork_guard.h"
#include "core/text.h"
#include "kiln/error.h"
#include "runtime/run.h"
#include "sanitizers.h"

namespace kiln {
namespace {

std::shared_ptr<KernelObject> make(const std::string& source) {
  KernelSpec spec;
  spec.name = "k";
  spec.input_names = {{"a"}};
  spec.output_names = {{"out"}};
  spec.source = source;
  return std::make_shared<KernelObject>(std::move(spec));
}

// Runs over `count` elements that are all 1; whether all of the result are `expected`.
bool gives(KernelObject& kernel, float expected, int64_t count = 16) {
  std::vector<float> a(static_cast<size_t>(count), 1.0f), out(static_cast<size_t>(count));
  int64_t shape[] = {count}, strides[] = {1};
  InputArray input{a.data(), Dtype::kFloat32, shape, strides};
  OutputArray output{Dtype::kFloat32, shape};
  void* data[] = {out.data()};
  run(kernel, Call{{&input, 1}, {&output, 1}, {}, {count, 1, 1}, {8, 1, 1}, {}, {}, {}}, data);
  return out == std::vector<float>(out.size(), expected);
}

std::string forked_body(int n) { return concat("out[thread_position_in_grid.x] = a[0] + a_shape[0] * 0 + ", n, ";"); }

// What a child does, to its exit status.
template <typename Function>
int in_child(const Function& function) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that waits for ever is one that fails
    bool right = false;
    try {
      right = function();
    } catch (const std::exception& error) {
      fprintf(stderr, "%s\n", error.what());
    }
    _exit(right ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(Fork, WhileOtherThreadsLaunch) {
  KILN_SKIP_UNLESS_FORK_IS_SAFE();
  auto kernel = make(forked_body(1)), large = make(forked_body(2)), failing = make("out[0] = nothing;");
  ASSERT_TRUE(gives(*kernel, 2));
  ASSERT_TRUE(gives(*large, 3, 100'000));
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int n = 0; !done; ++n) {
        // Each a shape of its own, which are looked up one after the other.
        EXPECT_TRUE(gives(*kernel, 2, 8 * (1 + n % 8)));
        if (n % 64 == 0) {
          EXPECT_TRUE(gives(*large, 3, 100'000));
        }
        if (n % 8 == t) {
          EXPECT_THROW(gives(*failing, 0), CompileError);
        }
        static_cast<void>(kernel->history().launches());
      }
    });
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(in_child([&] {
                bool right = gives(*kernel, 2) && kernel->history().launches().size() > 0;
                return right && (i % 8 != 0 || gives(*large, 3, 100'000));
              }),
              0)
        << i;
  done = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Fork, WhileOtherThreadsCompile) {
  KILN_SKIP_UNLESS_FORK_IS_SAFE();
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int n = 0; !done; ++n) EXPECT_TRUE(gives(*make(forked_body(1000 * (t + 1) + n)), 1001.0f + 1000 * t + n));
    });
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(in_child([&] { return gives(*make(forked_body(i)), 1.0f + i) && gives(*make(forked_body(1000)), 1001); }),
              0)
        << i;
  done = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Fork, InAChildOfAChild) {
  auto kernel = make(forked_body(1));
  EXPECT_TRUE(gives(*kernel, 2, 100'000));
  EXPECT_EQ(in_child([&] {
              bool right = gives(*kernel, 2, 100'000);
              return in_child([&] { return gives(*kernel, 2, 100'000) && gives(*make(forked_body(77)), 78); }) == 0 &&
                     right;
            }),
            0);
}

TEST(ForkGuard, KeepsForkFromItsScope) {
  std::atomic<int> half = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      while (!done) {
        ForkGuard outer;
        ++half;
        {
          ForkGuard inner;
          std::this_thread::yield();
        }
        --half;
      }
    });
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(in_child([&] {
                ForkGuard guard;
                return half == 0;
              }),
              0);
  }
  // A thread that forks within a scope of its own waits for the others.
  {
    ForkGuard guard;
    ++half;
    EXPECT_EQ(in_child([&] { return half == 1; }), 0);
    --half;
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace kiln
