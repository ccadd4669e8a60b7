// Many threads that make, compile, launch and drop kernels over the public interface (docs/language.md 6.2). Results
// are compared here; how they come about is what ThreadSanitizer looks at (`make test-tsan`).
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/concurrent_kernels.h"
#include "concurrent.h"
#include "kiln/kiln.h"

namespace kiln {
namespace {

constexpr int kThreads = 32;
// Few threads of a grid stay with the caller, many are spread over the pool.
constexpr size_t kSizes[] = {32, 64, 20'000};

Kernel make(NumberedKernel kernel) { return metal_kernel(kernel.name(), {"x"}, {"y"}, kernel.source()); }

// `x` must outlive it.
KernelCall call_with(const std::vector<float>& x) {
  auto size = static_cast<int64_t>(x.size());
  return {.inputs = {x},
          .output_shapes = {{size}},
          .output_dtypes = {Dtype::kFloat32},
          .grid = {size, 1, 1},
          .threadgroup = {32, 1, 1}};
}

std::vector<float> result_of(const Kernel& kernel, size_t size) {
  std::vector<float> x = inputs(size);
  std::vector<Tensor> outputs = kernel(call_with(x));
  auto values = outputs.at(0).values<float>();
  return {values.begin(), values.end()};
}

struct Held {
  Kernel kernel;
  NumberedKernel numbered;
};

TEST(TensorConcurrency, KernelsAreMadeCompiledLaunchedAndDropped) {
  constexpr int kRounds = 6, kShared = 12;
  std::mutex mutex;
  std::optional<Held> passed_on;  // so that others than their makers launch and drop them
  in_threads(kThreads, [&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      // Some that others make too, and one of its own.
      NumberedKernel numbered{round == 1 ? 100 + thread : (thread + 5 * round) % kShared};
      Held held{make(numbered), numbered};
      size_t size = kSizes[(thread + round) % std::size(kSizes)];
      if (round % 2 == 0) {
        std::vector<float> x = inputs(size);
        CompiledKernel compiled = held.kernel.compile(call_with(x));
        EXPECT_EQ(compiled.source(), held.kernel.source_for(call_with(x)));
      }
      EXPECT_EQ(result_of(held.kernel, size), numbered.expected(size)) << numbered.name();
      std::optional<Held> taken(std::move(held));
      {
        std::lock_guard lock(mutex);
        std::swap(taken, passed_on);
      }
      if (!taken) continue;
      EXPECT_EQ(result_of(taken->kernel, size), taken->numbered.expected(size)) << taken->numbered.name();
      EXPECT_FALSE(taken->kernel.history().empty());
    }
  });
}

TEST(TensorConcurrency, OneKernelIsLaunchedWithManyShapes) {
  NumberedKernel numbered{0};  // which has code for each of the first few
  Kernel kernel = make(numbered);
  in_threads(kThreads, [&](int thread) {
    for (size_t groups = 1; groups <= 10; ++groups) {
      size_t size = 32 * ((groups + static_cast<size_t>(thread)) % 10 + 1);
      EXPECT_EQ(result_of(kernel, size), numbered.expected(size));
    }
  });
  EXPECT_EQ(kernel.history().size(), 10u * kThreads);
}

TEST(TensorConcurrency, FailuresReachEveryThread) {
  Kernel right = make({3});
  in_threads(kThreads, [&](int thread) {
    std::vector<float> x = inputs(32);
    for (int round = 0; round < 4; ++round) {
      // One failure for all, and one for each.
      std::string name = concat("broken_", round % 2 == 0 ? 0 : 1 + thread);
      Kernel broken = metal_kernel(name, {"x"}, {"y"}, "y[0] = nothing;");
      try {
        broken(call_with(x));
        ADD_FAILURE() << "nothing was thrown";
      } catch (const CompileError& error) {
        EXPECT_EQ(std::string(error.what()),
                  concat("[metal_kernel] `", name, "` does not compile.\n",
                         "source:1:8: error: use of undeclared identifier 'nothing'\n  y[0] = nothing;\n         ^"));
        EXPECT_EQ(error.report()->diagnostics.size(), 1u);
      }
      Kernel stuck = metal_kernel("stuck", {"x"}, {"y"},
                                  "if (thread_position_in_grid.x < 1) threadgroup_barrier(mem_flags::mem_none);\n"
                                  "else threadgroup_barrier(mem_flags::mem_none);");
      EXPECT_THROW(stuck(call_with(x)), DeviceError);
      EXPECT_THROW(right({.inputs = {x}}), ValueError);
      EXPECT_EQ(result_of(right, 32), NumberedKernel{3}.expected(32));
    }
  });
}

TEST(TensorConcurrency, HistoryIsReadWhileOthersLaunch) {
  constexpr int kLaunchers = 8, kReaders = 4, kLaunches = 200;
  Kernel kernel = make({3});
  std::atomic<int> launching = kLaunchers;
  in_threads(kLaunchers + kReaders, [&](int thread) {
    if (thread < kLaunchers) {
      for (int i = 0; i < kLaunches; ++i) EXPECT_EQ(result_of(kernel, 32), NumberedKernel{3}.expected(32));
      --launching;
      return;
    }
    size_t before = 0;
    bool done;
    do {
      done = launching == 0;
      std::vector<Launch> launches = kernel.history();
      EXPECT_GE(launches.size(), before);  // it keeps 1,000, and only then drops the oldest
      before = launches.size();
      int compiled = 0;
      for (const Launch& launch : launches) {
        compiled += launch.code == "compiled";
        EXPECT_EQ(launch.target, "cpu");
        EXPECT_FALSE(launch.engine.empty());
        EXPECT_EQ(launch.compile_ms > 0, launch.code == "compiled");
        EXPECT_GE(launch.run_ms, 0);
      }
      EXPECT_LE(compiled, 1);
    } while (!done);
  });
  EXPECT_EQ(kernel.history().size(), 1000u);
}

// Each threadgroup waits until all of its launch have begun, so that every launch needs more threads than there are.
TEST(TensorConcurrency, ThreadgroupsOfSeveralLaunchesWaitForOneAnother) {
  constexpr int kLaunches = 4, kGroups = 6;
  Kernel kernel = metal_kernel("meet", {"groups"}, {"arrived"}, R"(
      atomic_fetch_add_explicit(&arrived[0], 1u, memory_order_relaxed);
      while (atomic_load_explicit(&arrived[0], memory_order_relaxed) % 100 < uint(groups)) {}
      atomic_fetch_add_explicit(&arrived[0], 100u, memory_order_relaxed);
  )",
                               "", true, /*atomic_outputs=*/true);
  in_threads(kLaunches, [&](int) {
    std::vector<Tensor> outputs = kernel({.inputs = {kGroups},
                                          .output_shapes = {{1}},
                                          .output_dtypes = {Dtype::kUInt32},
                                          .grid = {kGroups, 1, 1},
                                          .threadgroup = {1, 1, 1},
                                          .init_value = 0});
    EXPECT_EQ(outputs.at(0).item<uint32_t>(), 101u * kGroups);
  });
}

// The pool fills outputs and the caller copies inputs; the program's own memory is written by one launch at a time.
TEST(TensorConcurrency, LargeArraysAreCopiedAndFilled) {
  constexpr int64_t kRows = 3, kColumns = 250'000;
  std::vector<float> values = inputs(kRows * kColumns);
  Kernel kernel = metal_kernel("first_of_column", {"x"}, {"y"}, "y[0] = x[x_shape[1]];");
  in_threads(8, [&](int thread) {
    std::vector<float> y(kRows * kColumns, -1.0f);
    void* outputs[] = {y.data()};
    kernel.run({.inputs = {TensorView(values.data(), {kColumns, kRows}, {1, kColumns})},
                .output_shapes = {{kRows * kColumns}},
                .output_dtypes = {Dtype::kFloat32},
                .init_value = 5 + thread},
               outputs);
    EXPECT_EQ(y[0], values[1]);
    EXPECT_TRUE(std::all_of(y.begin() + 1, y.end(), [&](float v) { return v == static_cast<float>(5 + thread); }));
  });
}

}  // namespace
}  // namespace kiln
