// docs/language.md 1.6.
#include <gtest/gtest.h>

#include "frontend/signature_test_base.h"

namespace kiln {
namespace {

std::string text(const SignatureCase& c) { return c.write(&write_cuda).text; }

TEST(CudaText, OfTheSmallestKernel) {
  EXPECT_EQ(text({}), R"(namespace mlx::core::cu {

__global__ void custom_kernel_k_float(
    float* out) {
out[0] = 1;
}

}  // namespace mlx::core::cu
)");
}

TEST(CudaText, OfEveryKindOfArgument) {
  SignatureCase c;
  c.name = "my exp";
  c.header = "__device__ float f(float x) { return x; }";
  c.body = "auto e = cg::this_grid().thread_rank();\nout[e] = f(a[e]) + s[0] + a_shape[0] + a_strides[1] + a_ndim;";
  c.input_names = {"a", "s", "b"};
  c.inputs = {{Dtype::kFloat16, false, false}, kScalar, {Dtype::kBFloat16, false, true}};
  c.output_names = {"out", "flags"};
  c.outputs = {Dtype::kFloat64, Dtype::kBool};
  c.template_arguments = {{"T", Dtype::kBFloat16}, {"N", int32_t{-3}}, {"F", true}, {"G", false}};
  KernelUnit unit = c.write(&write_cuda);
  EXPECT_EQ(unit.text, R"(__device__ float f(float x) { return x; }
namespace mlx::core::cu {

__global__ void custom_kernel_my_exp___nv_bfloat16__3_1_0___half_floats___nv_bfloat16c_double_bool(
    const __half* a,
    const __grid_constant__ Shape a_shape,
    const __grid_constant__ Strides a_strides,
    const __grid_constant__ int a_ndim,
    const float* s,
    const __nv_bfloat16* b,
    double* out,
    bool* flags) {
  using T = __nv_bfloat16;
  constexpr int N = -3;
  constexpr bool F = true;
  constexpr bool G = false;
auto e = cg::this_grid().thread_rank();
out[e] = f(a[e]) + s[0] + a_shape[0] + a_strides[1] + a_ndim;
}

}  // namespace mlx::core::cu
)");
  EXPECT_EQ(unit.entry,
            "mlx::core::cu::custom_kernel_my_exp___nv_bfloat16__3_1_0___half_floats___nv_bfloat16c_double_bool");
  EXPECT_EQ(unit.dialect, Dialect::kCuda);
  EXPECT_EQ(unit.source_map.locate(1), (SourcePosition{SourceText::kHeader, 1}));
  EXPECT_EQ(unit.source_map.locate(17), (SourcePosition{SourceText::kBody, 1}));
  EXPECT_EQ(unit.source_map.locate(18), (SourcePosition{SourceText::kBody, 2}));
  EXPECT_EQ(unit.source_map.locate(19), (SourcePosition{SourceText::kGenerated, 19}));
}

TEST(CudaText, HasNoShapesOfScalars) {
  SignatureCase c;
  c.input_names = {"s"};
  c.inputs = {kScalar};
  c.body = "s_shape; s_strides; s_ndim;";
  EXPECT_EQ(text(c).find("s_shape,"), std::string::npos);
  EXPECT_EQ(text(c).find("Strides"), std::string::npos);
}

TEST(CudaText, LetsNamesOfArgumentsAndOfTheBodyWin) {
  SignatureCase c;
  c.input_names = {"x", "x_shape"};
  c.inputs = {kArray, kArray};
  c.output_names = {"x_ndim"};
  c.body = "x_shape[0]; int x_strides = 3; x_ndim[0] = x_strides;";
  EXPECT_EQ(text(c), R"(namespace mlx::core::cu {

__global__ void custom_kernel_k_float_float_float(
    const float* x,
    const float* x_shape,
    float* x_ndim) {
x_shape[0]; int x_strides = 3; x_ndim[0] = x_strides;
}

}  // namespace mlx::core::cu
)");
}

TEST(CudaText, IgnoresMetalsAttributes) {
  SignatureCase c;
  c.body = "out[0] = thread_position_in_grid.x;";
  EXPECT_TRUE(c.write(&write_cuda).attributes.empty());
  EXPECT_EQ(text(c).find("uint3"), std::string::npos);
}

}  // namespace
}  // namespace kiln
