#include "core/gpu_image.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

KernelParameter parameter(ParameterRole role, std::vector<int64_t> values = {}) {
  KernelParameter result;
  result.role = role;
  result.values = std::move(values);
  return result;
}

KernelUnit unit_of(Dialect dialect) {
  KernelUnit unit;
  unit.dialect = dialect;
  unit.parameters = {parameter(ParameterRole::kInput), parameter(ParameterRole::kNdim),
                     parameter(ParameterRole::kShape), parameter(ParameterRole::kStrides),
                     parameter(ParameterRole::kOutput)};
  return unit;
}

TEST(GpuBlockLayout, OfMetalBeginsWithTheGeometryAndIsAlignedToEight) {
  GpuBlockLayout layout = gpu_block_layout(unit_of(Dialect::kMetal));
  const uint32_t first = sizeof(GpuGeometry);
  EXPECT_EQ(first % 8, 0u);
  EXPECT_EQ(layout.offsets, (std::vector<uint32_t>{first, first + 24, first + 32, first + 96, first + 224}));
  EXPECT_EQ(layout.bytes, first + 248);
}

TEST(GpuBlockLayout, OfMetalLeavesOutWhatTheCodeWasMadeFor) {
  KernelUnit unit = unit_of(Dialect::kMetal);
  unit.parameters[2].values = {2, 3};
  unit.parameters[3].values = {3, 1};
  GpuBlockLayout layout = gpu_block_layout(unit);
  EXPECT_EQ(layout.offsets.back(), sizeof(GpuGeometry) + 32);
  EXPECT_EQ(layout.bytes, sizeof(GpuGeometry) + 56);
}

TEST(GpuBlockLayout, OfCudaIsThatOfCsParameters) {
  struct {
    float* x;
    int ndim;
    int shape[10];
    int64_t strides[10];
    float* y;
  } parameters;
  GpuBlockLayout layout = gpu_block_layout(unit_of(Dialect::kCuda));
  EXPECT_EQ(layout.offsets,
            (std::vector<uint32_t>{offsetof(decltype(parameters), x), offsetof(decltype(parameters), ndim),
                                   offsetof(decltype(parameters), shape), offsetof(decltype(parameters), strides),
                                   offsetof(decltype(parameters), y)}));
  EXPECT_EQ(layout.bytes, sizeof(parameters));
}

TEST(GpuBlockLayout, OfCudaDoesNotDependOnValues) {
  KernelUnit unit = unit_of(Dialect::kCuda);
  GpuBlockLayout before = gpu_block_layout(unit);
  unit.parameters[2].values = {2, 3};
  EXPECT_EQ(gpu_block_layout(unit).offsets, before.offsets);
}

}  // namespace
}  // namespace kiln
