// kiln::mlx::function(): MLX's transformations of functions with rules, against MLX's own operations.
#include <gtest/gtest.h>
#include <mlx/compile.h>
#include <mlx/ops.h>
#include <mlx/random.h>
#include <mlx/transforms.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "kiln/mlx.h"

namespace {

namespace mx = ::mlx::core;
using Arrays = std::vector<mx::array>;
using Specs = std::vector<kiln::mlx::ArraySpec>;

template <typename Error>
std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

kiln::mlx::FunctionLaunch launch_of(const kiln::mlx::ArraySpec& x) {
  int size = 1;
  for (int n : x.shape) size *= n;
  return {.output_shapes = {x.shape}, .output_dtypes = {x.dtype}, .grid = {size, 1, 1}, .threadgroup = {64, 1, 1}};
}

kiln::mlx::FunctionLaunch launch_of_first(const Specs& in) { return launch_of(in[0]); }

// x cos(w), with derivatives that are functions of arrays themselves.
const mx::fast::CustomKernelFunction product_kernel = kiln::mlx::metal_kernel(
    "product", {"x", "w"}, {"y"}, "uint i = thread_position_in_grid.x; y[i] = x[i] * cos(w[i]);");

Arrays operations(const Arrays& in) { return {in[0] * mx::cos(in[1])}; }

kiln::mlx::FunctionRules rules() {
  return {.vjp = [](const Arrays& in, const Arrays& cotangents, const Arrays&) -> Arrays {
            return {cotangents[0] * mx::cos(in[1]), -cotangents[0] * in[0] * mx::sin(in[1])};
          },
          .jvp = [](const Arrays& in, const Arrays& tangents, const std::vector<int>& argnums) -> Arrays {
            mx::array sum = mx::zeros_like(in[0]);
            for (size_t i = 0; i < argnums.size(); ++i)
              sum = sum + (argnums[i] == 0 ? tangents[i] * mx::cos(in[1]) : -tangents[i] * in[0] * mx::sin(in[1]));
            return {sum};
          },
          .vmap = kiln::mlx::Sequential{}};
}

const kiln::mlx::ArrayFunction product = kiln::mlx::function(product_kernel, launch_of_first, rules());

bool are_close(const Arrays& a, const Arrays& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].shape() != b[i].shape() || !mx::allclose(a[i], b[i], 1e-5, 1e-5).item<bool>()) return false;
  return true;
}

mx::array some(mx::Shape shape, int seed) {
  return mx::random::normal(shape, mx::float32, mx::random::key(static_cast<uint64_t>(seed)));
}

class MlxFunction : public testing::TestWithParam<mx::Shape> {};

TEST_P(MlxFunction, HasTheDerivativesOfOperations) {
  const Arrays in = {some(GetParam(), 1), some(GetParam(), 2)};
  const Arrays others = {some(GetParam(), 3), some(GetParam(), 4)};
  EXPECT_TRUE(are_close(product(in), operations(in)));
  EXPECT_TRUE(are_close(mx::vjp(product, in, {others[0]}).second, mx::vjp(operations, in, {others[0]}).second));
  EXPECT_TRUE(are_close(mx::jvp(product, in, others).second, mx::jvp(operations, in, others).second));
  auto loss = [](const kiln::mlx::ArrayFunction& f) {
    return [f](const Arrays& in) { return mx::sum(mx::square(f(in)[0])); };
  };
  for (const std::vector<int>& argnums : {std::vector{0}, std::vector{1}, std::vector{0, 1}, std::vector{1, 0}})
    EXPECT_TRUE(are_close(mx::grad(loss(product), argnums)(in), mx::grad(loss(operations), argnums)(in)));
  // Of the second order.
  auto slope = [&](const kiln::mlx::ArrayFunction& f) {
    return [f, loss](const Arrays& in) { return mx::sum(mx::square(mx::grad(loss(f), std::vector{0, 1})(in)[1])); };
  };
  EXPECT_TRUE(
      are_close(mx::grad(slope(product), std::vector{0, 1})(in), mx::grad(slope(operations), std::vector{0, 1})(in)));
}

INSTANTIATE_TEST_SUITE_P(Shapes, MlxFunction,
                         testing::Values(mx::Shape{5}, mx::Shape{3, 70}, mx::Shape{1}, mx::Shape{0},
                                         mx::Shape{2, 0, 3}));

TEST(MlxFunctions, BatchesAreLaunchedOneAfterTheOther) {
  const mx::array x = some({4, 3, 5}, 1), w = some({4, 5, 3}, 2), one = some({3, 5}, 3);
  const Arrays batch = {x, mx::transpose(w, {0, 2, 1})};
  EXPECT_TRUE(are_close(mx::vmap(product, {0, 0}, {0})(batch), operations(batch)));
  EXPECT_TRUE(are_close(mx::vmap(product, {0, -1}, {1})({x, one}), mx::vmap(operations, {0, -1}, {1})({x, one})));
  EXPECT_TRUE(are_close(mx::vmap(product, {-1, 2}, {0})({one, some({3, 5, 6}, 4)}),
                        mx::vmap(operations, {-1, 2}, {0})({one, some({3, 5, 6}, 4)})));
  const Arrays none = {mx::zeros({0, 3}), mx::zeros({0, 3})};
  EXPECT_EQ(mx::vmap(product, {0, 0}, {0})(none)[0].shape(), (mx::Shape{0, 3}));
  // A batch of gradients, and the gradient of a batch.
  auto gradients = [](const kiln::mlx::ArrayFunction& f) {
    return mx::vmap([f](const Arrays& in) {
      return mx::grad([f](const Arrays& in) { return mx::sum(f(in)[0]); }, std::vector{0, 1})(in);
    });
  };
  EXPECT_TRUE(are_close(gradients(product)(batch), gradients(operations)(batch)));
  auto sum = [](const kiln::mlx::ArrayFunction& f) {
    return mx::grad([f](const Arrays& in) { return mx::sum(mx::square(mx::vmap(f)(in)[0])); }, std::vector{0, 1});
  };
  EXPECT_TRUE(are_close(sum(product)(batch), sum(operations)(batch)));
}

// x[n - 1 - i] w[i]: a body that knows where it is in its grid.
const mx::fast::CustomKernelFunction mirrored_kernel = kiln::mlx::metal_kernel(
    "mirrored", {"x", "w"}, {"y"}, "uint i = thread_position_in_grid.x; y[i] = w[i] * x[threads_per_grid.x - 1 - i];");

mx::array reversed(const mx::array& x) { return mx::take(x, mx::arange(static_cast<int>(x.size()) - 1, -1, -1), 0); }

Arrays mirrored_operations(const Arrays& in) { return {in[1] * reversed(in[0])}; }

kiln::mlx::ArrayFunction make_mirrored() {
  kiln::mlx::ArrayFunction plain =
      kiln::mlx::function(mirrored_kernel, launch_of_first, {.vmap = kiln::mlx::GridAxis{}});
  return kiln::mlx::function(
      mirrored_kernel, launch_of_first,
      {.vjp = [plain](const Arrays& in, const Arrays& cotangents, const Arrays&) -> Arrays {
         return {plain({cotangents[0] * in[1], mx::ones_like(in[1])})[0], plain({in[0], cotangents[0]})[0]};
       },
       .jvp = [plain](const Arrays& in, const Arrays& tangents, const std::vector<int>& argnums) -> Arrays {
         mx::array sum = mx::zeros_like(in[0]);
         for (size_t i = 0; i < argnums.size(); ++i)
           sum = sum + plain(argnums[i] == 0 ? Arrays{tangents[i], in[1]} : Arrays{in[0], tangents[i]})[0];
         return {sum};
       },
       .vmap = kiln::mlx::GridAxis{}});
}

const kiln::mlx::ArrayFunction mirrored = make_mirrored();

// Threads that are the first to batch a function, in all combinations of batched inputs.
TEST(MlxFunctions, ThreadsBatchOneFunction) {
  const mx::array x = some({8, 5}, 1), v = some({8, 5}, 2), w = some({5}, 3);
  mx::eval(x, v, w);
  for (int round = 0; round < 5; ++round) {
    const kiln::mlx::ArrayFunction function = make_mirrored();
    std::atomic<int> wrong = 0, arrived = 0;
    std::vector<std::thread> threads;
    constexpr int kThreads = 6;
    for (int number = 0; number < kThreads; ++number)
      threads.emplace_back([&, number] {
        const std::vector<int> axes = std::array<std::vector<int>, 3>{{{0, 0}, {0, -1}, {-1, 0}}}[number % 3];
        const Arrays in = {axes[0] == 0 ? x : w, axes[1] == 0 ? v : w};
        ++arrived;
        while (arrived < kThreads) std::this_thread::yield();
        if (!are_close(mx::vmap(function, axes, {0})(in), mx::vmap(mirrored_operations, axes, {0})(in))) ++wrong;
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(MlxFunctions, BatchesAreAnAxisOfTheGrid) {
  const mx::array x = some({8, 5}, 1), v = some({8, 5}, 2), w = some({5}, 3);
  struct Case {
    Arrays in;
    std::vector<int> axes;
  };
  auto square_sum = [](const kiln::mlx::ArrayFunction& f) {
    return [f](const Arrays& in) { return mx::sum(mx::square(f(in)[0])); };
  };
  for (const auto& [in, axes] :
       {Case{{x, v}, {0, 0}}, Case{{x, w}, {0, -1}}, Case{{w, v}, {-1, 0}}, Case{{mx::transpose(x), w}, {1, -1}}}) {
    auto batched = mx::vmap(mirrored, axes, {0}), expected = mx::vmap(mirrored_operations, axes, {0});
    EXPECT_TRUE(are_close(batched(in), expected(in)));
    // Derivatives of batches, batches of derivatives.
    const std::vector<int> both{0, 1};
    EXPECT_TRUE(are_close(mx::grad(square_sum(batched), both)(in), mx::grad(square_sum(expected), both)(in)));
    auto gradients = [&](const kiln::mlx::ArrayFunction& f) {
      return mx::vmap([&, f](const Arrays& in) { return mx::grad(square_sum(f), both)(in); }, axes, {0, 0})(in);
    };
    EXPECT_TRUE(are_close(gradients(mirrored), gradients(mirrored_operations)));
    EXPECT_TRUE(are_close(mx::jvp(batched, in, in).second, mx::jvp(expected, in, in).second));
    // Of one input alone.
    EXPECT_TRUE(are_close(mx::grad(square_sum(batched), std::vector{1})(in),
                          mx::grad(square_sum(expected), std::vector{1})(in)));
  }
  // (MLX's own gradient of a reversal ends the process where there are no elements.)
  const Arrays none = {mx::zeros({0, 5}), w};
  EXPECT_EQ(mx::vmap(mirrored, {0, -1}, {0})(none)[0].shape(), (mx::Shape{0, 5}));
  EXPECT_EQ(mx::grad(square_sum(mx::vmap(mirrored, {0, -1}, {0})), std::vector{0})(none)[0].shape(), (mx::Shape{0, 5}));
  // A batch of batches.
  const mx::array stack = some({3, 8, 5}, 4), rows = some({3, 5}, 5);
  auto nested = [](const kiln::mlx::ArrayFunction& f) { return mx::vmap(mx::vmap(f, {0, -1}, {0}), {0, 0}, {0}); };
  EXPECT_TRUE(are_close(nested(mirrored)({stack, rows}), nested(mirrored_operations)({stack, rows})));
  auto outer = [](const kiln::mlx::ArrayFunction& f) { return mx::vmap(mx::vmap(f, {1, -1}, {0}), {-1, 0}, {0}); };
  EXPECT_TRUE(
      are_close(outer(mirrored)({mx::transpose(x), rows}), outer(mirrored_operations)({mx::transpose(x), rows})));
}

TEST(MlxFunctions, BatchesInGraphsForAnyShapes) {
  auto compiled = mx::compile(mx::vmap(mirrored), /*shapeless=*/true);
  for (const mx::Shape& shape : {mx::Shape{8, 5}, {3, 7}, {4, 2}, {5, 300}, {1, 1}}) {
    const Arrays in = {some(shape, 1), some(shape, 2)};
    EXPECT_TRUE(are_close(compiled(in), mx::vmap(mirrored_operations)(in))) << shape[0];
  }
}

TEST(MlxFunctions, BatchesOfMoreBlocksThanAGridHas) {
  auto kernel = kiln::mlx::cuda_kernel("next", {"x"}, {"y"}, "y[threadIdx.x] = x[threadIdx.x] + gridDim.z;");
  auto function =
      kiln::mlx::function(kernel, [](const Specs& in) { return launch_of(in[0]); }, {.vmap = kiln::mlx::GridAxis{}});
  const mx::array x = some({70000, 2}, 1);
  EXPECT_TRUE(are_close(mx::vmap(function)({x}), {x + 1.0f}));
}

TEST(MlxFunctions, BatchesThatAreNoAxisOfTheGrid) {
  auto deep = [](const Specs& in) {
    kiln::mlx::FunctionLaunch launch = launch_of(in[0]);
    launch.grid = {1, 1, 3};
    launch.threadgroup = {1, 1, 2};
    return launch;
  };
  auto function = kiln::mlx::function(mirrored_kernel, deep, {.vmap = kiln::mlx::GridAxis{}});
  EXPECT_EQ(
      error_of<kiln::ValueError>([&] { mx::vmap(function)({some({4, 3}, 1), some({4, 3}, 2)}); }),
      "[metal_kernel] A batch of `mirrored` as an axis of the grid needs whole threadgroups along z, and the grid "
      "has 3 threads there in threadgroups of 2.");
  auto very_deep = [](const Specs& in) {
    kiln::mlx::FunctionLaunch launch = launch_of(in[0]);
    launch.grid = {1, 1, 65536};
    return launch;
  };
  auto large = kiln::mlx::function(mirrored_kernel, very_deep, {.vmap = kiln::mlx::GridAxis{}});
  const mx::array many = mx::zeros({65537, 1});
  EXPECT_EQ(error_of<kiln::ValueError>([&] { mx::vmap(large)({many, many}); }),
            "[metal_kernel] Expected a batch of `mirrored` to have at most 2147483647 threads along z but got 65537 "
            "times 65536.");
  auto outside = kiln::mlx::cuda_kernel("outside", {"x"}, {"y"}, "y[threadIdx.x] = block();",
                                        "\n__device__ int block() { return blockIdx.x; }");
  const std::string message = error_of<kiln::UnsupportedError>(
      [&] { kiln::mlx::function(outside, launch_of_first, {.vmap = kiln::mlx::GridAxis{}}); });
  EXPECT_NE(message.find("header:2:"), std::string::npos) << message;
  auto bare = kiln::mlx::function(mirrored_kernel, launch_of_first, {.vmap = kiln::mlx::GridAxis{}});
  auto both = mx::vmap(mx::vmap(bare, std::vector<int>{0, -1}, std::vector<int>{0}), std::vector<int>{-1, 0},
                       std::vector<int>{0});
  EXPECT_EQ(error_of<kiln::ValueError>([&] { both({many, many}); }),
            "[metal_kernel] Expected a batch of `mirrored` to have at most 2147483647 elements but got 65537 times "
            "65537.");
  // Without rules for derivatives.
  const Arrays in = {some({4, 3}, 1), some({4, 3}, 2)};
  EXPECT_EQ(
      error_of<kiln::TypeError>([&] { mx::vjp(mx::vmap(bare), in, {in[0]}); }),
      "[metal_kernel] Input `x` of `mirrored` is differentiated (MLX, grad, vjp), and the function has no vjp rule.");
}

TEST(MlxFunctions, RulesForBatches) {
  kiln::mlx::FunctionRules own = rules();
  int calls = 0;
  std::vector<int> seen;
  kiln::mlx::ArrayFunction whole = kiln::mlx::function(product_kernel, launch_of_first);
  own.vmap = [&](const Arrays& in, const std::vector<int>& axes) -> std::pair<Arrays, std::vector<int>> {
    ++calls;
    seen = axes;
    auto in_front = [](const mx::array& x, int axis) { return mx::moveaxis(x, axis, 0); };
    return {whole({in_front(in[0], axes[0]), in_front(in[1], axes[1])}), {0}};
  };
  kiln::mlx::ArrayFunction batched = kiln::mlx::function(product_kernel, launch_of_first, own);
  const Arrays in = {some({4, 3}, 1), some({3, 4}, 2)};
  EXPECT_TRUE(are_close(mx::vmap(batched, {0, 1}, {0})(in), mx::vmap(operations, {0, 1}, {0})(in)));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(seen, (std::vector{0, 1}));
}

TEST(MlxFunctions, GraphsForAnyShapes) {
  int launches = 0;
  auto launch = [&](const Specs& in) {
    ++launches;
    return launch_of(in[0]);
  };
  kiln::mlx::ArrayFunction counted = kiln::mlx::function(product_kernel, launch, rules());
  auto program = [&](const Arrays& in) { return Arrays{counted({mx::exp(in[0]), in[1]})[0] + 1.0f}; };
  auto compiled = mx::compile(program, /*shapeless=*/true);
  for (int n : {8, 100, 3}) {
    const Arrays in = {some({n, 2}, n), some({n, 2}, n + 1)};
    EXPECT_TRUE(are_close(compiled(in), {operations({mx::exp(in[0]), in[1]})[0] + 1.0f})) << n;
  }
  EXPECT_GT(launches, 1);
  auto gradient = mx::compile(
      [](const Arrays& in) { return mx::grad([](const Arrays& in) { return mx::sum(product(in)[0]); })(in); });
  const Arrays in = {some({6}, 1), some({6}, 2)};
  EXPECT_TRUE(are_close(gradient(in), {mx::cos(in[1])}));
}

TEST(MlxFunctions, SeveralOutputsAndTemplateArguments) {
  auto kernel = kiln::mlx::metal_kernel("both", {"x"}, {"a", "b"},
                                        "uint i = thread_position_in_grid.x; a[i] = T(N) * x[i]; if (i < 2) b[i] = 7;");
  auto function = kiln::mlx::function(kernel, [](const Specs& in) {
    kiln::mlx::FunctionLaunch launch = launch_of(in[0]);
    launch.output_shapes.push_back({4});
    launch.output_dtypes.push_back(mx::int32);
    launch.template_arguments = {{"T", in[0].dtype}, {"N", in[0].shape[0]}};
    launch.init_value = 1;
    return launch;
  });
  for (mx::Dtype dtype : {mx::float32, mx::float16, mx::int32}) {
    mx::array x = mx::astype(mx::arange(3), dtype);
    Arrays got = function({x});
    EXPECT_EQ(got[0].dtype(), dtype);
    EXPECT_TRUE(mx::array_equal(got[0], 3 * x).item<bool>());
    EXPECT_TRUE(mx::array_equal(got[1], mx::array({7, 7, 1, 1})).item<bool>());
  }
}

TEST(MlxFunctions, MissingRulesAreErrors) {
  auto bare = kiln::mlx::function(product_kernel, launch_of_first);
  const Arrays in = {some({4}, 1), some({4}, 2)};
  EXPECT_EQ(
      error_of<kiln::TypeError>([&] { mx::vjp(bare, in, {in[0]}); }),
      "[metal_kernel] Input `x` of `product` is differentiated (MLX, grad, vjp), and the function has no vjp rule.");
  EXPECT_EQ(
      error_of<kiln::TypeError>([&] { mx::jvp(bare, in, in); }),
      "[metal_kernel] Input `x` of `product` is differentiated in forward mode (MLX, jvp), and the function has no "
      "jvp rule.");
  EXPECT_EQ(error_of<kiln::TypeError>([&] { mx::vmap(bare)(in); }),
            "[metal_kernel] `product` is batched (MLX, vmap), and the function has no vmap rule.");
}

TEST(MlxFunctions, WrongCallsAndRules) {
  const Arrays in = {some({4}, 1), some({4}, 2)};
  EXPECT_EQ(error_of<kiln::ValueError>([&] { product({in[0]}); }),
            "[metal_kernel] Expected `inputs` to have size 2 but got size 1.");
  auto own = mx::fast::CustomKernelFunction();
  EXPECT_EQ(error_of<kiln::ValueError>([&] { kiln::mlx::function(own, launch_of_first); }),
            "[function] Expected `kernel` to be made by kiln::mlx::metal_kernel or kiln::mlx::cuda_kernel.");
  EXPECT_EQ(error_of<kiln::ValueError>([&] { kiln::mlx::function(product_kernel, nullptr); }),
            "[metal_kernel] Expected `launch` to be a function.");
  kiln::mlx::FunctionRules wrong{
      .vjp = [](const Arrays& primals, const Arrays&, const Arrays&) -> Arrays { return {primals[0]}; },
      .jvp = [](const Arrays&, const Arrays&, const std::vector<int>&) -> Arrays { return {}; },
      .vmap = [](const Arrays& inputs,
                 const std::vector<int>&) { return std::pair(Arrays(inputs), std::vector{0, 0}); }};
  auto function = kiln::mlx::function(product_kernel, launch_of_first, wrong);
  EXPECT_EQ(error_of<kiln::ValueError>([&] { mx::vjp(function, in, {in[0]}); }),
            "[metal_kernel] Expected the vjp rule of `product` to return a value for each of 2 inputs but got 1.");
  EXPECT_EQ(error_of<kiln::ValueError>([&] { mx::jvp(function, in, in); }),
            "[metal_kernel] Expected the jvp rule of `product` to return a value for each of 1 output but got 0.");
  EXPECT_EQ(error_of<kiln::ValueError>([&] { mx::vmap(function)(in); }),
            "[metal_kernel] Expected the vmap rule of `product` to return a value for each of 1 output but got 2.");
  wrong.vjp = [](const Arrays&, const Arrays&, const Arrays&) -> Arrays { return {mx::zeros({3, 1}), mx::zeros({4})}; };
  auto reshaping = kiln::mlx::function(product_kernel, launch_of_first, wrong);
  EXPECT_EQ(error_of<kiln::ValueError>([&] { mx::vjp(reshaping, in, {in[0]}); }),
            "[metal_kernel] The vjp rule of `product` gave a gradient of shape (3, 1) for input `x` of shape (4,).");
}

// As a program on a Mac may do, and a function may not.
TEST(MlxFunctions, WriteNoInputs) {
  auto kernel = kiln::mlx::metal_kernel("store", {"x"}, {"y"}, "y[0] = 1;\n((device float*)x)[0] = 2;");
  auto function = kiln::mlx::function(kernel, launch_of_first);
  EXPECT_NE(error_of<kiln::UnsupportedError>([&] { mx::eval(function({mx::zeros({1})})); }).find("source:2"),
            std::string::npos);
}

}  // namespace
