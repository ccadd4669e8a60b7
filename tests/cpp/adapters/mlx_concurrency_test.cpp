// The same over MLX's graph: kernels that are made, put into graphs, evaluated and dropped by many threads, each on a
// stream of its own.
#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/stream.h>
#include <mlx/transforms.h>

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/concurrent_kernels.h"
#include "concurrent.h"
#include "kiln/mlx.h"

namespace kiln {
namespace {

namespace mx = ::mlx::core;

constexpr int kThreads = 32;
constexpr int kSizes[] = {32, 64, 20'000};

mx::fast::CustomKernelFunction make(NumberedKernel kernel) {
  return mlx::metal_kernel(kernel.name(), {"x"}, {"y"}, kernel.source());
}

mx::array call(const mx::fast::CustomKernelFunction& kernel, const mx::array& x) {
  auto size = static_cast<int>(x.size());
  return kernel({x}, {{size}}, {mx::float32}, {size, 1, 1}, {32, 1, 1}, {}, {}, false, {})[0];
}

mx::array array_of(const std::vector<float>& values) {
  return mx::array(values.begin(), {static_cast<int>(values.size())});
}

std::vector<float> to_vector(mx::array array) {
  mx::eval(array);
  return {array.data<float>(), array.data<float>() + array.size()};
}

// Ends with the streams that MLX made for the thread.
template <typename Function>
void in_threads_with_streams(int count, const Function& function) {
  in_threads(count, [&](int thread) {
    function(thread);
    mx::synchronize();
    mx::clear_streams();
  });
}

TEST(MlxConcurrency, KernelsAreMadeEvaluatedAndDropped) {
  constexpr int kRounds = 6, kShared = 12;
  in_threads_with_streams(kThreads, [&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      NumberedKernel numbered{round == 1 ? 100 + thread : (thread + 5 * round) % kShared};
      size_t size = static_cast<size_t>(kSizes[(thread + round) % std::size(kSizes)]);
      // The graph alone holds the kernel.
      mx::array y = call(make(numbered), array_of(inputs(size)));
      if (round % 3 == 1) mx::async_eval(y);
      EXPECT_EQ(to_vector(y), numbered.expected(size)) << numbered.name();
    }
  });
}

TEST(MlxConcurrency, OneKernelIsInManyGraphs) {
  NumberedKernel numbered{3};  // n - x
  auto kernel = make(numbered);
  in_threads_with_streams(kThreads, [&](int thread) {
    for (int round = 0; round < 8; ++round) {
      size_t size = static_cast<size_t>(kSizes[(thread + round) % 2]);
      // Twice, with an operation of MLX's between them.
      mx::array x = array_of(inputs(size));
      mx::array y = call(kernel, call(kernel, x + static_cast<float>(thread)) * 2.0f);
      std::vector<float> expected(size);
      for (size_t i = 0; i < size; ++i) expected[i] = 3 - 2 * (3 - (input(i) + static_cast<float>(thread)));
      EXPECT_EQ(to_vector(y), expected);
    }
  });
}

// A kernel that a thread has made, and its unevaluated result, end in another one.
TEST(MlxConcurrency, GraphsArePassedOn) {
  struct Graph {
    mx::fast::CustomKernelFunction kernel;
    mx::array result;
    NumberedKernel numbered;
    size_t size;
  };
  std::mutex mutex;
  std::optional<Graph> passed_on;
  // On one stream: MLX's streams belong to threads, but for this kind.
  mx::Stream stream = mx::new_thread_unsafe_stream(mx::Device::cpu);
  std::mutex evaluating;
  in_threads(kThreads, [&](int thread) {
    for (int round = 0; round < 4; ++round) {
      NumberedKernel numbered{(thread + round) % 8};
      size_t size = static_cast<size_t>(kSizes[round % 2]);
      auto kernel = make(numbered);
      mx::array result = kernel({array_of(inputs(size))}, {{static_cast<int>(size)}}, {mx::float32},
                                {static_cast<int>(size), 1, 1}, {32, 1, 1}, {}, {}, false, stream)[0];
      std::optional<Graph> graph(Graph{std::move(kernel), std::move(result), numbered, size});
      {
        std::lock_guard lock(mutex);
        std::swap(graph, passed_on);
      }
      if (!graph) continue;
      std::lock_guard lock(evaluating);
      EXPECT_EQ(to_vector(graph->result), graph->numbered.expected(graph->size));
    }
  });
}

TEST(MlxConcurrency, FailuresReachEveryThread) {
  in_threads_with_streams(kThreads, [&](int thread) {
    for (int round = 0; round < 3; ++round) {
      std::string name = "broken_" + std::to_string(round % 2 == 0 ? 0 : 1 + thread);
      mx::array x = array_of(inputs(32));
      mx::array broken = call(mlx::metal_kernel(name, {"x"}, {"y"}, "y[0] = nothing;"), x);
      EXPECT_THROW(mx::eval(broken), CompileError);
      mx::array stuck = call(mlx::metal_kernel("stuck", {"x"}, {"y"},
                                               "if (thread_position_in_grid.x < 1) threadgroup_barrier("
                                               "mem_flags::mem_none);\nelse threadgroup_barrier(mem_flags::mem_none);"),
                             x);
      EXPECT_THROW(mx::eval(stuck), DeviceError);
      EXPECT_EQ(to_vector(call(make({3}), x)), NumberedKernel{3}.expected(32));
    }
  });
}

}  // namespace
}  // namespace kiln
