// A function of MLX's arrays with a gradient of its own: swish(x, b) = x / (1 + exp(-b x)), forward and backward each
// in one kernel, as nodes of MLX's lazy graph. Learns b by gradient descent.
//
// docs/reference/cpp.md says how to build it, and what it prints.
#include <kiln/mlx.h>
#include <mlx/mlx.h>

#include <cmath>
#include <iostream>

namespace mx = mlx::core;

namespace {

// One thread for each element of `x`.
kiln::mlx::FunctionLaunch launch_of_elements(const kiln::mlx::ArraySpec& x) {
  int size = 1;
  for (int n : x.shape) size *= n;
  return {.output_shapes = {x.shape}, .output_dtypes = {x.dtype}, .grid = {size, 1, 1}, .threadgroup = {256, 1, 1}};
}

// With s = 1 / (1 + exp(-b x)): dy/dx = s + b x s (1 - s), and dy/db = x² s (1 - s), which is summed: lanes first, then
// one atomic addition for each simdgroup.
const auto swish_vjp =
    kiln::mlx::function(kiln::mlx::metal_kernel("swish_vjp", {"x", "b", "cotangent"}, {"x_grad", "b_grad"}, R"(
          uint i = thread_position_in_grid.x;
          float s = 1.0f / (1.0f + exp(-b * x[i]));
          float slope = x[i] * s * (1.0f - s);
          atomic_store_explicit(&x_grad[i], cotangent[i] * (s + b * slope), memory_order_relaxed);
          float sum = simd_sum(cotangent[i] * x[i] * slope);
          if (thread_index_in_simdgroup == 0) {
              atomic_fetch_add_explicit(b_grad, sum, memory_order_relaxed);
          }
      )",
                                                "", /*ensure_row_contiguous=*/true, /*atomic_outputs=*/true),
                        [](const std::vector<kiln::mlx::ArraySpec>& in) {
                          kiln::mlx::FunctionLaunch launch = launch_of_elements(in[0]);
                          launch.output_shapes.push_back(in[1].shape);
                          launch.output_dtypes.push_back(in[1].dtype);
                          launch.init_value = 0.0f;
                          return launch;
                        });

// One thread for each element; `b` is an array without dimensions, so the body sees a number.
const auto swish = kiln::mlx::function(
    kiln::mlx::metal_kernel("swish", {"x", "b"}, {"y"}, R"(
          uint i = thread_position_in_grid.x;
          y[i] = x[i] / (1.0f + exp(-b * x[i]));
      )"),
    [](const std::vector<kiln::mlx::ArraySpec>& in) { return launch_of_elements(in[0]); },
    {.vjp = [](const std::vector<mx::array>& in, const std::vector<mx::array>& cotangents,
               const std::vector<mx::array>&) { return swish_vjp({in[0], in[1], cotangents[0]}); }});

// The same from MLX's operations.
mx::array swish_operations(const mx::array& x, const mx::array& b) { return x * mx::sigmoid(b * x); }

}  // namespace

int main() {
  mx::array x = mx::linspace(-6, 6, 10000);
  mx::array y = swish({x, mx::array(1.5f)})[0];
  std::cout << "evaluated by the call: " << (y.is_available() ? "yes" : "no") << "\n";
  float difference = mx::max(mx::abs(y - swish_operations(x, mx::array(1.5f)))).item<float>();

  auto loss_of = [&](auto function) {
    return [&x, function](const std::vector<mx::array>& in) {
      return mx::mean(mx::square(function(x, in[0]) - swish_operations(x, mx::array(1.5f))));
    };
  };
  auto by_kernel = mx::grad([&](const std::vector<mx::array>& in) {
    return loss_of([](const mx::array& v, const mx::array& b) { return swish({v, b})[0]; })(in);
  });
  auto by_operations = mx::grad([&](const std::vector<mx::array>& in) { return loss_of(swish_operations)(in); });
  float gradient = by_kernel({mx::array(0.5f)})[0].item<float>();
  float expected = by_operations({mx::array(0.5f)})[0].item<float>();
  std::cout << "gradient of b at 0.5: " << gradient << ", by operations " << expected << "\n";

  mx::array b = mx::array(0.5f);
  for (int step = 0; step < 100; ++step) {
    b = b - by_kernel({b})[0];
    mx::eval(b);
  }
  std::cout << "b is 1.5; learnt " << b.item<float>() << "\n";
  bool right = difference < 1e-5f && std::abs(gradient - expected) < 1e-5f && std::abs(b.item<float>() - 1.5f) < 0.01f;
  return right ? 0 : 1;
}
