// What kiln::mlx::metal_kernel() and cuda_kernel() put into MLX's CustomKernelFunction, where function() finds it
// again.
#pragma once

#include <mlx/fast.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/kernel_object.h"

namespace kiln::mlx {

struct KernelFunction {
  std::shared_ptr<KernelObject> kernel;

  std::vector<::mlx::core::array> operator()(
      const std::vector<::mlx::core::array>& inputs, const std::vector<::mlx::core::Shape>& output_shapes,
      const std::vector<::mlx::core::Dtype>& output_dtypes, std::tuple<int, int, int> grid,
      std::tuple<int, int, int> threadgroup,
      const std::vector<std::pair<std::string, ::mlx::core::fast::TemplateArg>>& template_arguments,
      std::optional<float> init_value, bool verbose, ::mlx::core::StreamOrDevice place) const;
};

Extent3 to_extent(const std::tuple<int, int, int>& value);
TemplateArgument to_kiln(const std::pair<std::string, ::mlx::core::fast::TemplateArg>& argument);

}  // namespace kiln::mlx
