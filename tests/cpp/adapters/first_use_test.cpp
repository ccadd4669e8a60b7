// What a process does once (the settings, the pool of threads, the compiler's library and what LLVM sets up in it, the
// context of all kernels), when the first to ask are many threads at once. A program of one test, so that it is the
// first.
#include <gtest/gtest.h>

#include "adapters/concurrent_kernels.h"
#include "concurrent.h"
#include "kiln/kiln.h"

namespace kiln {
namespace {

TEST(FirstUse, IsByManyThreadsAtOnce) {
  constexpr int kThreads = 32, kShared = 4;
  constexpr int64_t kSize = 20'000;
  in_threads(kThreads, [&](int thread) {
    NumberedKernel numbered{thread % 2 == 0 ? thread / 2 % kShared : 100 + thread};
    Kernel kernel = metal_kernel(numbered.name(), {"x"}, {"y"}, numbered.source());
    std::vector<float> x = inputs(kSize);
    std::vector<Tensor> outputs = kernel({.inputs = {x},
                                          .output_shapes = {{kSize}},
                                          .output_dtypes = {Dtype::kFloat32},
                                          .grid = {kSize, 1, 1},
                                          .threadgroup = {32, 1, 1}});
    auto y = outputs.at(0).values<float>();
    EXPECT_EQ(std::vector<float>(y.begin(), y.end()), numbered.expected(kSize)) << numbered.name();
  });
}

}  // namespace
}  // namespace kiln
