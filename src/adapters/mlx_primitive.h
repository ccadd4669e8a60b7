// A kernel as a node of MLX's graph.
#pragma once

#include <mlx/array.h>
#include <mlx/primitives.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/kernel_object.h"

namespace kiln {

// A call as the graph keeps it: everything but the arrays.
struct MlxCall {
  std::shared_ptr<KernelObject> kernel;
  std::vector<TemplateArgument> template_arguments;
  Extent3 grid{};
  Extent3 threadgroup{};
  std::optional<Number> init_value;
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
};

Dtype to_kiln(::mlx::core::Dtype dtype);
::mlx::core::Dtype to_mlx(Dtype dtype);

/// Adds one node to the graph and returns its outputs. Throws what KernelObject::check throws.
std::vector<::mlx::core::array> add_to_graph(MlxCall call, std::vector<::mlx::core::array> inputs,
                                             const std::vector<::mlx::core::Shape>& output_shapes,
                                             const std::vector<Dtype>& output_dtypes, ::mlx::core::Stream stream);

/// Calls `function(const Call&)` with a description of the call that views its arguments. Before evaluation
/// (`evaluated` is false) inputs have neither data nor strides; they are described as row-contiguous.
void with_call(const MlxCall& call, bool evaluated, const std::vector<::mlx::core::array>& inputs,
               const std::vector<::mlx::core::Shape>& output_shapes, const std::vector<Dtype>& output_dtypes,
               const std::function<void(const Call&)>& function);

}  // namespace kiln
