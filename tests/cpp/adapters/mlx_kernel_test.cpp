// The functions that have MLX's own types.
#include <gtest/gtest.h>
#include <mlx/fast.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include <cstdlib>
#include <functional>
#include <type_traits>

#include "kiln/mlx.h"

namespace {

namespace mx = ::mlx::core;

static_assert(std::is_same_v<decltype(&kiln::mlx::metal_kernel), decltype(&mx::fast::metal_kernel)>);
static_assert(std::is_same_v<decltype(&kiln::mlx::cuda_kernel), decltype(&mx::fast::cuda_kernel)>);

template <typename Error = std::invalid_argument>
std::string message_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::vector<mx::array> call(const mx::fast::CustomKernelFunction& kernel, std::vector<mx::array> inputs,
                            std::vector<mx::Shape> shapes, std::vector<mx::Dtype> dtypes,
                            std::optional<float> init_value = {}, mx::StreamOrDevice place = {},
                            std::vector<std::pair<std::string, mx::fast::TemplateArg>> arguments = {}) {
  return kernel(inputs, shapes, dtypes, {8, 1, 1}, {4, 1, 1}, arguments, init_value, false, place);
}

TEST(MlxKernel, IsLazyAndGivesMlxsArrays) {
  auto kernel =
      kiln::mlx::metal_kernel("exp_", {"x"}, {"y"}, "uint i = thread_position_in_grid.x; y[i] = T(N) * exp(x[i]);");
  mx::array x = mx::arange(8.0f);
  mx::array y = call(kernel, {x + 1.0f}, {{8}}, {mx::float32}, {}, {}, {{"T", mx::float32}, {"N", 3}})[0];
  EXPECT_FALSE(y.is_available());
  EXPECT_TRUE(mx::allclose(y, 3.0f * mx::exp(x + 1.0f)).item<bool>());
}

// As on a Mac.
TEST(MlxKernel, WritesInputsInPlaceAndWarnsOnce) {
  auto kernel =
      kiln::mlx::metal_kernel("add", {"x", "sums"}, {"y"},
                              "uint i = thread_position_in_grid.x; ((device float*)sums)[i] += x[i]; y[i] = sums[i];");
  mx::array x = mx::arange(8.0f), sums = mx::zeros({8});
  mx::eval(x, sums);
  testing::internal::CaptureStderr();
  for (int round = 0; round < 2; ++round) call(kernel, {x, sums}, {{8}}, {mx::float32})[0].eval();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: [metal_kernel] `add` writes its input `sums` through a cast, in place, as on a Mac. Name it in "
            "compile_options={\"writable_inputs\": […]} where that is meant, or write an output.\n");
  EXPECT_TRUE(mx::array_equal(sums, 2.0f * x).item<bool>());
  EXPECT_EQ(message_of<std::exception>([&] { call(kernel, {sums, sums}, {{8}}, {mx::float32})[0].eval(); }),
            "[metal_kernel] The memory of input `x` and of input `sums`, which is written in place, overlap.");
}

TEST(MlxKernel, FillsOutputsAndTakesMathModes) {
  mx::CompileOptions options;
  options.math_mode = mx::MathMode::Fast;
  auto kernel = kiln::mlx::metal_kernel("f", {}, {"y"},
                                        "#ifdef __FAST_MATH__\nif (thread_position_in_grid.x == 0) y[0] = 9;\n#endif\n",
                                        "", true, false, options);
  mx::array y = call(kernel, {}, {{3}}, {mx::int32}, 2.0f)[0];
  EXPECT_TRUE(mx::array_equal(y, mx::array({9, 2, 2})).item<bool>());
}

TEST(MlxKernel, TakesEachMathModeAndNoOther) {
  auto kernel_of = [](mx::MathMode mode) {
    mx::CompileOptions options;
    options.math_mode = mode;
    return kiln::mlx::metal_kernel("mode", {"x"}, {"y"}, R"(
        y[0] = (x[0] + x[1]) - x[0];
        #ifdef __FAST_MATH__
        y[0] += 5;
        #endif
    )",
                                   "", true, false, options);
  };
  auto result_of = [&](mx::MathMode mode) {
    return call(kernel_of(mode), {mx::array({1e30f, 1.0f})}, {{1}}, {mx::float32})[0].item<float>();
  };
  EXPECT_EQ(result_of(mx::MathMode::Safe), 0);  // the sum is rounded
  EXPECT_EQ(result_of(mx::MathMode::Relaxed), 1);
  EXPECT_EQ(result_of(mx::MathMode::Fast), 6);
  EXPECT_EQ(message_of([&] { kernel_of(static_cast<mx::MathMode>(9)); }),
            "[metal_kernel] Expected math_mode to be Safe, Relaxed or Fast.");
}

TEST(MlxKernel, TakesEachKindOfTemplateArgument) {
  auto kernel = kiln::mlx::metal_kernel("kinds", {}, {"y"}, "y[0] = F ? T(N) / 2 : -1;");
  auto value = [&](mx::Dtype type, bool flag) {
    return call(kernel, {}, {{1}}, {mx::float32}, {}, {}, {{"T", type}, {"N", 5}, {"F", flag}})[0].item<float>();
  };
  EXPECT_EQ(value(mx::float32, true), 2.5f);
  EXPECT_EQ(value(mx::int32, true), 2);
  EXPECT_EQ(value(mx::float32, false), -1);
}

TEST(MlxKernel, PrintsItsTextWhenAsked) {
  auto kernel = kiln::mlx::metal_kernel("printed", {"x"}, {"y"}, "y[0] = x[0];");
  testing::internal::CaptureStdout();
  kernel({mx::arange(8.0f)}, {{1}}, {mx::float32}, {1, 1, 1}, {1, 1, 1}, {}, {}, /*verbose=*/true, {});
  std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(printed.starts_with("Generated source code for `printed`:\n```\n[[kernel]] void ")) << printed;
  EXPECT_NE(printed.find("  const device float* x [[buffer(0)]],\n"), std::string::npos) << printed;
  EXPECT_TRUE(printed.ends_with("y[0] = x[0];\n}\n\n```\n")) << printed;
}

TEST(MlxKernel, ComposesWithVjp) {
  auto square =
      kiln::mlx::metal_kernel("square", {"x"}, {"y"}, "uint i = thread_position_in_grid.x; y[i] = x[i] * x[i];");
  auto gradient = kiln::mlx::metal_kernel("square_vjp", {"x", "c"}, {"g"},
                                          "uint i = thread_position_in_grid.x; g[i] = 2 * x[i] * c[i];");
  auto function = mx::custom_vjp(
      [&](const std::vector<mx::array>& in) { return call(square, in, {in[0].shape()}, {mx::float32}); },
      [&](const std::vector<mx::array>& in, const std::vector<mx::array>& cotangents, const std::vector<mx::array>&) {
        return call(gradient, {in[0], cotangents[0]}, {in[0].shape()}, {mx::float32});
      });
  mx::array x = mx::arange(8.0f);
  auto [values, vjps] =
      mx::vjp([&](const std::vector<mx::array>& in) { return function(in); }, {x}, {mx::full({8}, 3.0f)});
  EXPECT_TRUE(mx::array_equal(values[0], x * x).item<bool>());
  EXPECT_TRUE(mx::array_equal(vjps[0], 6.0f * x).item<bool>());
}

TEST(MlxKernel, SaysWhatIsWrong) {
  auto kernel = kiln::mlx::metal_kernel("k", {"x"}, {"y"}, "y[0] = x[0];");
  mx::array x = mx::arange(8.0f);
  EXPECT_EQ(message_of([&] { call(kernel, {}, {{8}}, {mx::float32}); }),
            "[metal_kernel] Expected `inputs` to have size 1 but got size 0.");
  EXPECT_EQ(message_of([&] { call(kernel, {x}, {}, {mx::float32}); }),
            "[metal_kernel] Expected `output_shapes` to have size 1 but got size 0.");
  EXPECT_EQ(message_of([&] { call(kernel, {x}, {{8}}, {}); }),
            "[metal_kernel] Expected `output_dtypes` to have size 1 but got size 0.");
  EXPECT_EQ(message_of([&] { kiln::mlx::metal_kernel("k", {}, {}, ""); }),
            "[metal_kernel] Must specify at least one output.");
  auto broken = kiln::mlx::metal_kernel("broken", {}, {"y"}, "y[0] = nothing;");
  mx::array y = call(broken, {}, {{1}}, {mx::float32})[0];
  EXPECT_THROW(mx::eval(y), kiln::CompileError);
  EXPECT_EQ(message_of([&] { call(kernel, {x}, {{8}}, {mx::float64}); }),
            "[metal_kernel] Metal has no double, but output `y` is float64.");
  auto cuda = kiln::mlx::cuda_kernel("c", {}, {"y"}, "y[0] = 1;", "", true, 64);
  for (mx::Dtype dtype : {mx::float32, mx::float64}) {
    mx::array z = call(cuda, {}, {{1}}, {dtype})[0];
    EXPECT_EQ(z.dtype(), dtype);
    EXPECT_EQ(mx::astype(z, mx::int32, mx::Device(mx::Device::cpu)).item<int>(), 1);
  }
}

TEST(MlxKernel, RunsOnTheCpuWhereAGpuIsMissing) {
  if (mx::is_available(mx::Device::gpu)) GTEST_SKIP() << "MLX has a GPU here";
  auto kernel = kiln::mlx::metal_kernel("k", {}, {"y"}, "y[0] = 5;");
  testing::internal::CaptureStderr();
  for (int round = 0; round < 2; ++round)
    EXPECT_EQ(call(kernel, {}, {{1}}, {mx::int32}, {}, mx::Device(mx::Device::gpu))[0].item<int>(), 5);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: [metal_kernel] MLX has no GPU here: kernels that are to run on it run on the CPU. "
            "KILN_STRICT_DEVICE=1 makes this an error.\n");
}

}  // namespace
