// Kernels as nodes of MLX's graph, from C++: how long a node keeps its kernel, and that evaluation waits only for what
// it needs. What programs see is tested from Python.
#include "adapters/mlx_primitive.h"

#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include <future>

#include "core/text.h"
#include "kiln/error.h"
#include "runtime/held_compiler.h"
#include "sanitizers.h"

namespace kiln {
namespace {

namespace mx = ::mlx::core;

std::shared_ptr<KernelObject> make_kernel(std::string source, Context& context) {
  KernelSpec spec;
  spec.name = "k";
  spec.input_names = {{"a"}};
  spec.output_names = {{"out"}};
  spec.source = std::move(source);
  return std::make_shared<KernelObject>(std::move(spec), context);
}

mx::array call(std::shared_ptr<KernelObject> kernel, const mx::array& a) {
  MlxCall call{
      std::move(kernel), {}, {a.size() > 0 ? static_cast<int64_t>(a.size()) : 1, 1, 1}, {32, 1, 1}, {}, {}, {}};
  return add_to_graph(std::move(call), {a}, {a.shape()}, {Dtype::kFloat32}, mx::default_stream(mx::Device::cpu))[0];
}

constexpr const char* kDouble = "uint i = thread_position_in_grid.x; out[i] = 2 * a[i];";
constexpr const char* kBrokenBarrier =
    "if (thread_position_in_grid.x < 4) threadgroup_barrier(mem_flags::mem_none);\n"
    "else threadgroup_barrier(mem_flags::mem_none);";

TEST(MlxPrimitive, KeepsItsKernelUntilItIsEvaluated) {
  auto kernel = make_kernel(kDouble, Context::shared());
  std::weak_ptr<KernelObject> watched = kernel;
  mx::array result = call(std::move(kernel), mx::ones({20}));
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(mx::sum(result).item<float>(), 40.0f);
  mx::synchronize();
  EXPECT_TRUE(watched.expired());
}

TEST(MlxPrimitive, DropsItsKernelWhenNobodyWantsTheResult) {
  std::weak_ptr<KernelObject> watched;
  {
    auto kernel = make_kernel(kDouble, Context::shared());
    watched = kernel;
    mx::array result = call(std::move(kernel), mx::ones({20}));
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

TEST(MlxPrimitive, DropsItsKernelAfterAFailure) {
  for (const char* source : {"out[0] = nothing;", kBrokenBarrier}) {
    std::weak_ptr<KernelObject> watched;
    {
      auto kernel = make_kernel(source, Context::shared());
      watched = kernel;
      mx::array result = call(std::move(kernel), mx::ones({20}));
      EXPECT_THROW(mx::eval(result), std::runtime_error);
    }
    mx::synchronize();
    EXPECT_TRUE(watched.expired()) << source;
  }
}

TEST(MlxPrimitive, ThrowsWhatALaunchThrows) {
  mx::array result = call(make_kernel(kBrokenBarrier, Context::shared()), mx::ones({20}));
  EXPECT_THROW(mx::eval(result), DeviceError);
  EXPECT_THROW(mx::async_eval(result), DeviceError);
  EXPECT_EQ(mx::sum(call(make_kernel(kDouble, Context::shared()), mx::ones({20}))).item<float>(), 40.0f);
}

TEST(MlxPrimitive, IsEvaluatedWhileAnotherKernelCompiles) {
  auto hold = std::make_shared<CompilerHold>("HELD");
  Context context(std::make_unique<HeldCompiler>(hold));
  auto held = make_kernel(concat(kDouble, " // HELD"), context), ready = make_kernel(kDouble, context);
  auto slow = std::async(std::launch::async, [&] { return mx::sum(call(held, mx::ones({20}))).item<float>(); });
  Release release{*hold};
  hold->wait_until_held();
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(mx::sum(call(ready, mx::full({20}, static_cast<float>(i)))).item<float>(), 40.0f * static_cast<float>(i));
  EXPECT_EQ(slow.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  hold->release();
  EXPECT_EQ(slow.get(), 40.0f);
}

TEST(MlxPrimitive, NamesTheOutputThatThereIsNoMemoryFor) {
  MlxCall huge{make_kernel("out[0] = 1;", Context::shared()), {}, {1, 1, 1}, {1, 1, 1}, {}, {}, {}};
  mx::array result = add_to_graph(std::move(huge), {mx::ones({1})}, {{1 << 30, 1 << 30}}, {Dtype::kFloat32},
                                  mx::default_stream(mx::Device::cpu))[0];
  try {
    mx::eval(result);
    FAIL();
  } catch (const std::bad_alloc& error) {
    EXPECT_EQ(std::string(error.what()),
              "[metal_kernel] There is no memory for the 4611686018427387904 bytes of output `out`.");
  }
}

TEST(MlxPrimitive, ThrowsWhereThereIsNoMemoryForACopyOfAnInput) {
  KILN_SKIP_UNLESS_NEW_THROWS();
  mx::array large = mx::broadcast_to(mx::array(1.0f), {1 << 30, 1 << 29});
  MlxCall copying{make_kernel("out[0] = a[5];", Context::shared()), {}, {1, 1, 1}, {1, 1, 1}, {}, {}, {}};
  mx::array result =
      add_to_graph(std::move(copying), {large}, {{1}}, {Dtype::kFloat32}, mx::default_stream(mx::Device::cpu))[0];
  EXPECT_THROW(mx::eval(result), std::bad_alloc);
}

}  // namespace
}  // namespace kiln
