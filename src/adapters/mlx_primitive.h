// A kernel as a node of MLX's graph.
#pragma once

#include <mlx/array.h>
#include <mlx/primitives.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
  Device device{};  // add_to_graph sets it
  // Told when the kernel first writes an input that its options do not name; may be null. Called by the thread that
  // evaluates; what it throws ends the evaluation.
  void (*warn)(const std::string& message) = nullptr;
};

// What MLX's transformations ask of a function of arrays (python/kiln/_functions_mlx.py has the rules). Arrays are as
// in mlx::core::Primitive's methods of these names.
class MlxRules {
 public:
  using Arrays = std::vector<::mlx::core::array>;

  // What a launch has beside its arrays, for inputs of other shapes than those that it was made for.
  struct Extents {
    Extent3 grid{}, threadgroup{};
    std::vector<TemplateArgument> template_arguments;
    // Those that the last inputs are, of a launch whose grid is a part (frontend/grid_part.h): a graph has them from
    // when it was made.
    std::vector<int64_t> numbers = {};
  };

  virtual ~MlxRules() = default;
  virtual Arrays vjp(const Arrays& primals, const Arrays& cotangents, const std::vector<int>& argnums,
                     const Arrays& outputs) = 0;
  virtual Arrays jvp(const Arrays& primals, const Arrays& tangents, const std::vector<int>& argnums) = 0;
  virtual std::pair<Arrays, std::vector<int>> vmap(const Arrays& inputs, const std::vector<int>& axes) = 0;
  virtual std::vector<::mlx::core::Shape> output_shapes(const Arrays& inputs) = 0;
  virtual Extents extents(const Arrays& inputs) = 0;
  virtual bool is_equivalent(const MlxRules& other) const = 0;
};

/// Gives rules to the node that an array was made by add_to_graph() with; the array has not been used yet.
void attach_rules(const ::mlx::core::array& output, std::shared_ptr<MlxRules> rules);

Dtype to_kiln(::mlx::core::Dtype dtype);
::mlx::core::Dtype to_mlx(Dtype dtype);

/// Adds one node to the graph and returns its outputs. Throws what KernelObject::check throws.
std::vector<::mlx::core::array> add_to_graph(MlxCall call, const std::vector<::mlx::core::array>& inputs,
                                             const std::vector<::mlx::core::Shape>& output_shapes,
                                             const std::vector<Dtype>& output_dtypes, ::mlx::core::Stream stream);

// What of its inputs is known when a call is described.
enum class Known : uint8_t {
  kShapes,   // before evaluation: strides are those of row-contiguous arrays
  kStrides,  // at evaluation: what is still to write the data may go on
  kData,     // when the kernel is launched
};

/// Calls `function(const Call&)` with a description of the call that views its arguments.
void with_call(const MlxCall& call, Known known, const std::vector<::mlx::core::array>& inputs,
               const std::vector<::mlx::core::Shape>& output_shapes, const std::vector<Dtype>& output_dtypes,
               const std::function<void(const Call&)>& function);

}  // namespace kiln
