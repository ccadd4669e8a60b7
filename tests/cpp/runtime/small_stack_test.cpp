// Launches and compilations on threads with little stack.
#include <gtest/gtest.h>
#include <limits.h>
#include <pthread.h>

#include <functional>
#include <string>
#include <vector>

#include "core/text.h"
#include "kiln/kiln.h"

namespace kiln {
namespace {

void run_with_stack(size_t bytes, const std::function<void()>& function) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* argument) -> void* {
                  (*static_cast<const std::function<void()>*>(argument))();
                  return nullptr;
                },
                const_cast<std::function<void()>*>(&function)),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

std::vector<float> run_kernel(const Kernel& kernel, const std::vector<float>& x) {
  auto size = static_cast<int64_t>(x.size());
  KernelCall call{.inputs = {x},
                  .output_shapes = {{size}},
                  .output_dtypes = {Dtype::kFloat32},
                  .grid = {size, 1, 1},
                  .threadgroup = {32, 1, 1}};
  std::vector<Tensor> outputs = kernel(call);
  auto values = outputs[0].values<float>();
  return {values.begin(), values.end()};
}

class SmallStack : public testing::TestWithParam<size_t> {};

// A private array of `elements` floats, of which the last one that is written is read.
Kernel with_array(int elements) {
  return metal_kernel("small_stack", {"x"}, {"y"},
                      concat("uint i = thread_position_in_grid.x; float a[", elements, "]; for (int k = 0; k < ",
                             elements, "; ++k) a[k] = x[i] + k; y[i] = a[int(x[i]) * 3 + ", elements - 100, "];"));
}

TEST_P(SmallStack, Compiles) {
  std::vector<float> x = {1, 2, 3, 4}, y;
  run_with_stack(GetParam() << 10, [&] { y = run_kernel(with_array(static_cast<int>(1000 + GetParam())), x); });
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y.at(i), x[i] + 3 * x[i] + 900 + static_cast<float>(GetParam()));
}

TEST_P(SmallStack, LaunchesKernelsWithLargePrivateArrays) {
  std::vector<float> x = {1, 2, 3, 4};
  for (int elements : {1000, 10'000, 50'000, 60'000}) {
    Kernel kernel = with_array(elements);
    std::vector<float> expected = run_kernel(kernel, x), y;
    run_with_stack(GetParam() << 10, [&] { y = run_kernel(kernel, x); });
    EXPECT_EQ(y, expected) << elements;
    EXPECT_EQ(y[1], 2 + 6 + static_cast<float>(elements - 100));
  }
}

#ifdef __SANITIZE_ADDRESS__
INSTANTIATE_TEST_SUITE_P(, SmallStack, testing::Values(128, 192, 256, 512));  // its frames are larger
#elif defined(__SANITIZE_THREAD__)
INSTANTIATE_TEST_SUITE_P(, SmallStack, testing::Values(128, 192, 256, 512));
#else
INSTANTIATE_TEST_SUITE_P(, SmallStack, testing::Values(32, 48, 64, 96, 128, 192, 256));
#endif

}  // namespace
}  // namespace kiln
