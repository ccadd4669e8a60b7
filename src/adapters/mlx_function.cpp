// kiln::mlx::function(): a kernel's node in MLX's graph gets the function's rules, which MLX asks for when it
// transforms the node. Python's functions do the same (python/kiln/_functions_mlx.py).
#include <mlx/ops.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "adapters/mlx_kernel.h"
#include "adapters/mlx_primitive.h"
#include "core/text.h"
#include "kiln/mlx.h"

namespace kiln::mlx {
namespace {

namespace mx = ::mlx::core;

class RulesInCpp : public MlxRules, public std::enable_shared_from_this<RulesInCpp> {
 public:
  RulesInCpp(KernelFunction kernel, FunctionLaunchRule launch, FunctionRules rules, mx::StreamOrDevice stream)
      : kernel_(std::move(kernel)), launch_(std::move(launch)), rules_(std::move(rules)), stream_(stream) {}

  Arrays call(const Arrays& inputs) {
    if (inputs.size() != input_count())
      throw ValueError(
          concat(prefix(), "Expected `inputs` to have size ", input_count(), " but got size ", inputs.size(), "."));
    const FunctionLaunch launch = launch_(specs_of(inputs));
    Arrays outputs = kernel_(inputs, launch.output_shapes, launch.output_dtypes, launch.grid, launch.threadgroup,
                             launch.template_arguments, launch.init_value, /*verbose=*/false, stream_);
    attach_rules(outputs[0], shared_from_this());
    return outputs;
  }

  Arrays vjp(const Arrays& primals, const Arrays& cotangents, const std::vector<int>& argnums,
             const Arrays& outputs) override {
    if (!rules_.vjp) refuse("vjp", concat(input(argnums[0]), "is differentiated (MLX, grad, vjp)"));
    const Arrays all = rules_.vjp(primals, cotangents, outputs);
    check_count("vjp", "input", all.size(), input_count());
    Arrays gradients;
    for (int i : argnums) {
      const auto at = static_cast<size_t>(i);
      if (all[at].shape() != primals[at].shape())
        throw ValueError(concat(prefix(), "The vjp rule of `", name(), "` gave a gradient of shape ",
                                shown(all[at].shape()), " for input `", input_name(at), "` of shape ",
                                shown(primals[at].shape()), "."));
      gradients.push_back(all[at]);
    }
    return gradients;
  }

  Arrays jvp(const Arrays& primals, const Arrays& tangents, const std::vector<int>& argnums) override {
    if (!rules_.jvp) refuse("jvp", concat(input(argnums[0]), "is differentiated in forward mode (MLX, jvp)"));
    Arrays results = rules_.jvp(primals, tangents, argnums);
    check_count("jvp", "output", results.size(), output_count());
    return results;
  }

  std::pair<Arrays, std::vector<int>> vmap(const Arrays& inputs, const std::vector<int>& axes) override {
    if (std::holds_alternative<Sequential>(rules_.vmap)) return launch_one_after_the_other(inputs, axes);
    const auto* rule = std::get_if<FunctionRules::Vmap>(&rules_.vmap);
    if (!rule || !*rule) refuse("vmap", concat("`", name(), "` is batched (MLX, vmap)"));
    std::pair<Arrays, std::vector<int>> result = (*rule)(inputs, axes);
    check_count("vmap", "output", result.first.size(), output_count());
    check_count("vmap", "output", result.second.size(), output_count());
    return result;
  }

  std::vector<mx::Shape> output_shapes(const Arrays& inputs) override {
    return launch_(specs_of(inputs)).output_shapes;
  }

  Extents extents(const Arrays& inputs) override {
    const FunctionLaunch launch = launch_(specs_of(inputs));
    Extents extents{to_extent(launch.grid), to_extent(launch.threadgroup), {}};
    for (const auto& argument : launch.template_arguments) extents.template_arguments.push_back(to_kiln(argument));
    return extents;
  }

  bool is_equivalent(const MlxRules& other) const override { return &other == this; }

 private:
  static std::vector<ArraySpec> specs_of(const Arrays& arrays) {
    std::vector<ArraySpec> specs;
    for (const mx::array& array : arrays) specs.push_back({array.shape(), array.dtype()});
    return specs;
  }

  std::pair<Arrays, std::vector<int>> launch_one_after_the_other(const Arrays& inputs, const std::vector<int>& axes) {
    int size = 0;
    std::vector<ArraySpec> specs = specs_of(inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (axes[i] < 0) continue;
      size = inputs[i].shape(axes[i]);
      specs[i].shape.erase(specs[i].shape.begin() + axes[i]);
    }
    std::vector<Arrays> of_outputs(output_count());
    for (int element = 0; element < size; ++element) {
      Arrays own;
      for (size_t i = 0; i < inputs.size(); ++i)
        own.push_back(axes[i] < 0 ? inputs[i] : mx::take(inputs[i], element, axes[i], stream_));
      const Arrays outputs = call(own);
      for (size_t i = 0; i < outputs.size(); ++i) of_outputs[i].push_back(outputs[i]);
    }
    Arrays batches;
    if (size == 0) {
      const FunctionLaunch launch = launch_(specs);
      for (size_t i = 0; i < output_count(); ++i) {
        mx::Shape shape = launch.output_shapes[i];
        shape.insert(shape.begin(), 0);
        batches.push_back(mx::zeros(shape, launch.output_dtypes[i], stream_));
      }
    } else {
      for (const Arrays& outputs : of_outputs) batches.push_back(mx::stack(outputs, 0, stream_));
    }
    return {std::move(batches), std::vector<int>(output_count(), 0)};
  }

  const KernelSpec& spec() const { return kernel_.kernel->spec(); }
  const std::string& name() const { return spec().name; }
  size_t input_count() const { return spec().input_names->size(); }
  size_t output_count() const { return spec().output_names->size(); }
  const std::string& input_name(size_t i) const { return spec().input_names->at(i); }
  std::string_view prefix() const { return message_prefix(spec().dialect); }
  std::string input(int i) const {
    return concat("Input `", input_name(static_cast<size_t>(i)), "` of `", name(), "` ");
  }

  static std::string shown(const mx::Shape& shape) {
    std::string text;
    for (int size : shape) text += concat(text.empty() ? "" : ", ", size);
    return concat("(", text, shape.size() == 1 ? ",)" : ")");
  }

  [[noreturn]] void refuse(std::string_view rule, const std::string& what) const {
    throw TypeError(concat(prefix(), what, ", and the function has no ", rule, " rule."));
  }

  void check_count(std::string_view rule, std::string_view kind, size_t count, size_t expected) const {
    if (count != expected)
      throw ValueError(concat(prefix(), "Expected the ", rule, " rule of `", name(), "` to return a value for each of ",
                              expected, " ", kind, expected == 1 ? "" : "s", " but got ", count, "."));
  }

  const KernelFunction kernel_;
  const FunctionLaunchRule launch_;
  const FunctionRules rules_;
  const mx::StreamOrDevice stream_;
};

}  // namespace

ArrayFunction function(const mx::fast::CustomKernelFunction& kernel, FunctionLaunchRule launch, FunctionRules rules,
                       mx::StreamOrDevice stream) {
  const auto* own = kernel.target<KernelFunction>();
  if (!own)
    throw ValueError("[function] Expected `kernel` to be made by kiln::mlx::metal_kernel or kiln::mlx::cuda_kernel.");
  if (!launch)
    throw ValueError(concat(message_prefix(own->kernel->spec().dialect), "Expected `launch` to be a function."));
  // A function of arrays writes none of its inputs, so that equal calls may be one.
  KernelSpec spec = own->kernel->spec();
  spec.allows_input_stores = false;
  KernelFunction pure{std::make_shared<KernelObject>(std::move(spec))};
  auto shared = std::make_shared<RulesInCpp>(std::move(pure), std::move(launch), std::move(rules), stream);
  return [shared](const std::vector<mx::array>& inputs) { return shared->call(inputs); };
}

}  // namespace kiln::mlx
