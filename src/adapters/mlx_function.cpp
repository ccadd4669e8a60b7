// kiln::mlx::function(): a kernel's node in MLX's graph gets the function's rules, which MLX asks for when it
// transforms the node. Python's functions do the same (python/kiln/_functions_mlx.py).
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "adapters/mlx_kernel.h"
#include "adapters/mlx_primitive.h"
#include "core/fork_guard.h"
#include "core/text.h"
#include "frontend/grid_part.h"
#include "kiln/mlx.h"

namespace kiln::mlx {
namespace {

namespace mx = ::mlx::core;

class BatchInCpp;

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
    if (std::holds_alternative<GridAxis>(rules_.vmap)) return launch_as_grid_axis(inputs, axes);
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

  // ---- What a batch of it asks.

  /// The same for the same inputs that are batched, while a graph has it: equal launches of a graph are one.
  std::shared_ptr<BatchInCpp> batch_of(const std::vector<bool>& batched);

  FunctionLaunch launch_of(const std::vector<ArraySpec>& specs) const { return launch_(specs); }
  const FunctionRules& rules() const { return rules_; }
  Arrays gradients_of(const Arrays& primals, const Arrays& cotangents, const Arrays& outputs) const {
    Arrays gradients = rules_.vjp(primals, cotangents, outputs);
    check_count("vjp", "input", gradients.size(), input_count());
    return gradients;
  }
  Arrays tangents_of(const Arrays& primals, const Arrays& tangents, const std::vector<int>& argnums) const {
    Arrays results = rules_.jvp(primals, tangents, argnums);
    check_count("jvp", "output", results.size(), output_count());
    return results;
  }
  [[noreturn]] void refuse_differentiation(const char* rule, int argnum, std::string_view how) const {
    refuse(rule, concat(input(argnum), how));
  }
  const KernelSpec& spec() const { return kernel_.kernel->spec(); }
  size_t input_count() const { return spec().input_names->size(); }
  size_t output_count() const { return spec().output_names->size(); }
  mx::StreamOrDevice stream() const { return stream_; }

  static std::vector<ArraySpec> specs_of(const Arrays& arrays) {
    std::vector<ArraySpec> specs;
    for (const mx::array& array : arrays) specs.push_back({array.shape(), array.dtype()});
    return specs;
  }

  std::pair<Arrays, std::vector<int>> launch_as_grid_axis(const Arrays& inputs, const std::vector<int>& axes);

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

  const std::string& name() const { return spec().name; }
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
  // For each combination of batched inputs. Kernels stay, with the code that was made for them. What holds this in a
  // graph does not.
  struct Batch {
    std::shared_ptr<KernelObject> kernel;
    std::weak_ptr<BatchInCpp> rules;
  };
  std::mutex mutex_;
  std::map<std::vector<bool>, Batch> batches_;
};

// A whole batch in one launch: the grids of its elements lie one after the other along z. The batch is the first axis
// of all outputs and of the inputs that `batched` says. (python/kiln/_grid_parts.py has the same for Python's
// functions.)
class BatchInCpp : public MlxRules, public std::enable_shared_from_this<BatchInCpp> {
 public:
  BatchInCpp(std::shared_ptr<RulesInCpp> whole, std::vector<bool> batched, std::shared_ptr<KernelObject> kernel)
      : whole_(std::move(whole)), batched_(std::move(batched)) {
    kernel_.kernel = std::move(kernel);
  }

  static std::shared_ptr<KernelObject> kernel_of(const RulesInCpp& whole, const std::vector<bool>& batched) {
    KernelSpec spec = whole.spec();
    spec.part.batched_inputs = batched;
    const std::vector<std::string> numbers = part_inputs(spec.part, *spec.output_names);
    spec.input_names->insert(spec.input_names->end(), numbers.begin(), numbers.end());
    spec.part.batched_inputs.resize(spec.input_names->size(), false);
    return std::make_shared<KernelObject>(std::move(spec));
  }

  Arrays call(const Arrays& inputs) {
    const std::vector<ArraySpec> specs = RulesInCpp::specs_of(inputs);
    const auto [launch, numbers, size] = launch_of(specs);
    if (kernel_.kernel->spec().dialect == Dialect::kCuda) {
      const int most = static_cast<int>(std::max<int64_t>(1, kMostBlocksInZ / std::max<int64_t>(1, numbers[1])));
      if (size > most) return call_in_several_launches(inputs, size, most);
    }
    Arrays all = inputs;
    for (int64_t number : numbers) {
      if (number != static_cast<int32_t>(number))
        throw ValueError(concat(prefix(), "A batch of `", name(), "` has ", number,
                                " elements or threads, and as an axis of the grid no more than 2147483647."));
      all.push_back(mx::array(static_cast<int32_t>(number)));
    }
    Arrays outputs = kernel_(all, launch.output_shapes, launch.output_dtypes, launch.grid, launch.threadgroup,
                             launch.template_arguments, launch.init_value, /*verbose=*/false, whole_->stream());
    attach_rules(outputs[0], shared_from_this());
    return outputs;
  }

  // ---- Its rules: those of an element under MLX's own vmap.

  Arrays vjp(const Arrays& primals, const Arrays& cotangents, const std::vector<int>& argnums,
             const Arrays& outputs) override {
    if (!whole_->rules().vjp) whole_->refuse_differentiation("vjp", argnums[0], "is differentiated (MLX, grad, vjp)");
    const size_t count = batched_.size(), results = whole_->output_count();
    Arrays values = own(primals);
    values.insert(values.end(), cotangents.begin(), cotangents.end());
    values.insert(values.end(), outputs.begin(), outputs.end());
    std::vector<int> axes = own_axes();
    axes.resize(values.size(), 0);
    auto of_element = [whole = whole_, count, results](const Arrays& in) {
      const auto begin = in.begin(), middle = begin + static_cast<std::ptrdiff_t>(count),
                 end = middle + static_cast<std::ptrdiff_t>(results);
      return whole->gradients_of({begin, middle}, {middle, end}, {end, in.end()});
    };
    const Arrays all = mx::vmap(of_element, axes, std::vector<int>(count, 0))(values);
    Arrays gradients;
    for (int i : argnums) {
      const auto at = static_cast<size_t>(i);
      // An input that all have in common has the gradients of all.
      gradients.push_back(batched_[at] ? all[at] : mx::sum(all[at], 0, /*keepdims=*/false, whole_->stream()));
    }
    return gradients;
  }

  Arrays jvp(const Arrays& primals, const Arrays& tangents, const std::vector<int>& argnums) override {
    if (!whole_->rules().jvp)
      whole_->refuse_differentiation("jvp", argnums[0], "is differentiated in forward mode (MLX, jvp)");
    Arrays values = own(primals);
    std::vector<int> axes = own_axes();
    for (size_t i = 0; i < argnums.size(); ++i) {
      values.push_back(tangents[i]);
      axes.push_back(axes[static_cast<size_t>(argnums[i])]);
    }
    auto of_element = [whole = whole_, count = batched_.size(), argnums](const Arrays& in) {
      const auto middle = in.begin() + static_cast<std::ptrdiff_t>(count);
      return whole->tangents_of({in.begin(), middle}, {middle, in.end()}, argnums);
    };
    return mx::vmap(of_element, axes, std::vector<int>(whole_->output_count(), 0))(values);
  }

  // A batch of batches is one.
  std::pair<Arrays, std::vector<int>> vmap(const Arrays& inputs, const std::vector<int>& axes) override {
    const mx::StreamOrDevice stream = whole_->stream();
    int outer = 0, inner = 0;
    Arrays arrays = own(inputs);
    std::vector<bool> flags = batched_;
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (axes[i] >= 0) {
        outer = arrays[i].shape(axes[i]);
        arrays[i] = mx::moveaxis(arrays[i], axes[i], 0, stream);
        flags[i] = true;
      }
      if (batched_[i]) inner = arrays[i].shape(axes[i] >= 0 ? 1 : 0);
    }
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (!flags[i]) continue;
      if (axes[i] < 0) arrays[i] = mx::expand_dims(arrays[i], 0, stream);
      if (!batched_[i]) arrays[i] = mx::expand_dims(arrays[i], 1, stream);
      mx::Shape shape = arrays[i].shape();
      shape[0] = outer;
      shape[1] = inner;
      arrays[i] = mx::broadcast_to(arrays[i], shape, stream);
      shape.erase(shape.begin());
      shape[0] = product(inner, outer, "elements");
      arrays[i] = mx::reshape(arrays[i], shape, stream);
    }
    Arrays outputs = whole_->batch_of(flags)->call(arrays);
    for (mx::array& output : outputs) {
      mx::Shape shape = output.shape();
      shape[0] = inner;
      shape.insert(shape.begin(), outer);
      output = mx::reshape(output, shape, stream);
    }
    return {std::move(outputs), std::vector<int>(whole_->output_count(), 0)};
  }

  std::vector<mx::Shape> output_shapes(const Arrays& inputs) override {
    return launch_of(RulesInCpp::specs_of(own(inputs))).launch.output_shapes;
  }

  Extents extents(const Arrays& inputs) override {
    BatchLaunch batch = launch_of(RulesInCpp::specs_of(own(inputs)));
    Extents extents{to_extent(batch.launch.grid), to_extent(batch.launch.threadgroup), {}, std::move(batch.numbers)};
    for (const auto& argument : batch.launch.template_arguments)
      extents.template_arguments.push_back(to_kiln(argument));
    return extents;
  }

  bool is_equivalent(const MlxRules& other) const override { return &other == this; }

 private:
  // CUDA's blocks along z: what NVIDIA's hardware takes. (Grids of Metal bodies that are larger are folded.)
  static constexpr int64_t kMostBlocksInZ = 65535;

  struct BatchLaunch {
    FunctionLaunch launch;
    std::vector<int64_t> numbers;  // of part_inputs()
    int size;                      // of the batch
  };

  BatchLaunch launch_of(std::vector<ArraySpec> specs) const {
    int size = 0;
    for (size_t i = 0; i < specs.size(); ++i) {
      if (!batched_[i]) continue;
      size = specs[i].shape[0];
      specs[i].shape.erase(specs[i].shape.begin());
    }
    BatchLaunch batch{whole_->launch_of(specs), {}, size};
    FunctionLaunch& launch = batch.launch;
    int& depth = std::get<2>(launch.grid);
    const int threads = std::max(1, std::get<2>(launch.threadgroup));
    if (threads != 1 && depth % threads != 0)
      throw ValueError(concat(prefix(), "A batch of `", name(),
                              "` as an axis of the grid needs whole threadgroups along z, and the grid has ", depth,
                              " threads there in threadgroups of ", threads, "."));
    batch.numbers = {depth, depth / threads};
    for (mx::Shape& shape : launch.output_shapes) {
      int64_t elements = 1;
      for (int n : shape) elements *= n;
      batch.numbers.push_back(elements);
      shape.insert(shape.begin(), size);
    }
    depth = product(depth, size, "threads along z");
    return batch;
  }

  Arrays call_in_several_launches(const Arrays& inputs, int size, int most) {
    std::vector<Arrays> parts(whole_->output_count());
    for (int begin = 0; begin < size; begin += most) {
      Arrays some = inputs;
      for (size_t i = 0; i < some.size(); ++i) {
        if (!batched_[i]) continue;
        mx::Shape start(some[i].ndim(), 0), stop = some[i].shape();
        start[0] = begin;
        stop[0] = std::min(size, begin + most);
        some[i] = mx::slice(some[i], start, stop, whole_->stream());
      }
      const Arrays outputs = call(some);
      for (size_t i = 0; i < outputs.size(); ++i) parts[i].push_back(outputs[i]);
    }
    Arrays outputs;
    for (Arrays& part : parts) outputs.push_back(mx::concatenate(std::move(part), 0, whole_->stream()));
    return outputs;
  }

  // Of two numbers of a batch.
  int product(int one, int other, const char* what) const {
    int result = 0;
    if (__builtin_mul_overflow(one, other, &result))
      throw ValueError(concat(prefix(), "Expected a batch of `", name(), "` to have at most ",
                              std::numeric_limits<int>::max(), " ", what, " but got ", other, " times ", one, "."));
    return result;
  }

  // Without the numbers.
  Arrays own(const Arrays& inputs) const {
    return {inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(batched_.size())};
  }
  std::vector<int> own_axes() const {
    std::vector<int> axes;
    for (bool is_batched : batched_) axes.push_back(is_batched ? 0 : -1);
    return axes;
  }
  const std::string& name() const { return kernel_.kernel->spec().name; }
  std::string_view prefix() const { return message_prefix(kernel_.kernel->spec().dialect); }

  const std::shared_ptr<RulesInCpp> whole_;
  const std::vector<bool> batched_;
  KernelFunction kernel_;
};

std::shared_ptr<BatchInCpp> RulesInCpp::batch_of(const std::vector<bool>& batched) {
  std::shared_ptr<KernelObject> made;
  for (;;) {
    {
      ForkGuard fork_guard;
      std::lock_guard lock(mutex_);
      auto& [kernel, known] = batches_[batched];
      if (!kernel) kernel = std::move(made);
      if (kernel) {
        std::shared_ptr<BatchInCpp> batch = known.lock();
        if (!batch) known = batch = std::make_shared<BatchInCpp>(shared_from_this(), batched, kernel);
        return batch;
      }
    }
    // The body is read for it. Threads do not wait for that; those that need the same one keep the first that is made.
    made = BatchInCpp::kernel_of(*this, batched);
  }
}

std::pair<MlxRules::Arrays, std::vector<int>> RulesInCpp::launch_as_grid_axis(const Arrays& inputs,
                                                                              const std::vector<int>& axes) {
  Arrays arrays = inputs;
  std::vector<bool> batched;
  for (size_t i = 0; i < arrays.size(); ++i) {
    batched.push_back(axes[i] >= 0);
    if (axes[i] > 0) arrays[i] = mx::moveaxis(arrays[i], axes[i], 0, stream_);
  }
  return {batch_of(batched)->call(arrays), std::vector<int>(output_count(), 0)};
}

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
  const bool has_grid_axis = std::holds_alternative<GridAxis>(rules.vmap);
  auto shared = std::make_shared<RulesInCpp>(std::move(pure), std::move(launch), std::move(rules), stream);
  // Says now what the body does that a batch cannot.
  if (has_grid_axis) shared->batch_of(std::vector<bool>(own->kernel->spec().input_names->size(), true));
  return [shared](const std::vector<mx::array>& inputs) { return shared->call(inputs); };
}

}  // namespace kiln::mlx
