// As first_use_test.cpp, with MLX's arrays: MLX sets itself up at the same time. A program of one test.
#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/stream.h>
#include <mlx/transforms.h>

#include "adapters/concurrent_kernels.h"
#include "concurrent.h"
#include "kiln/mlx.h"

namespace kiln {
namespace {

namespace mx = ::mlx::core;

TEST(MlxFirstUse, IsByManyThreadsAtOnce) {
  constexpr int kThreads = 32, kShared = 4, kSize = 20'000;
  in_threads(kThreads, [&](int thread) {
    NumberedKernel numbered{thread % 2 == 0 ? thread / 2 % kShared : 100 + thread};
    auto kernel = mlx::metal_kernel(numbered.name(), {"x"}, {"y"}, numbered.source());
    mx::array x(inputs(kSize).begin(), {kSize});
    mx::array y = kernel({x}, {{kSize}}, {mx::float32}, {kSize, 1, 1}, {32, 1, 1}, {}, {}, false, {})[0];
    mx::eval(y);
    EXPECT_EQ(std::vector<float>(y.data<float>(), y.data<float>() + kSize), numbered.expected(kSize))
        << numbered.name();
    mx::synchronize();
    mx::clear_streams();
  });
}

}  // namespace
}  // namespace kiln
