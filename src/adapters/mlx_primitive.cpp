// The kernel is compiled in `eval_cpu` and `eval_gpu`, on the thread that evaluates, so that a CompileError reaches the
// program as what it is (an exception in a stream's task becomes a plain one). Only the launch goes to the stream;
// `eval_cpu` waits for one that may fail, and `eval_gpu` adds it to MLX's CUDA graph. Nothing here touches Python.
#include "adapters/mlx_primitive.h"

#include <mlx/allocator.h>
#include <mlx/backend/cpu/encoder.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <stdexcept>

#include "adapters/mlx_cuda.h"
#include "adapters/mlx_stream.h"
#include "core/array_layout.h"
#include "core/device_traits.h"
#include "core/dtype_table.h"
#include "core/floating_point_state.h"
#include "core/interruption.h"
#include "core/number_conversion.h"
#include "core/out_of_memory.h"
#include "core/text.h"
#include "core/thread_locals.h"
#include "core/thread_state.h"
#include "kiln/error.h"
#include "runtime/run.h"

namespace mx = mlx::core;

namespace kiln {
namespace {

// A launch of as many threads takes ten milliseconds or more.
constexpr double kLongLaunchThreads = 1 << 24;

// What with_call builds its views on.
struct CallStorage {
  std::vector<int64_t> dimensions;  // shape and strides of each input, shape of each output
  std::vector<InputArray> inputs;
  std::vector<OutputArray> outputs;
};

int64_t* append(std::vector<int64_t>& dimensions, const mx::Shape& shape) {
  size_t first = dimensions.size();
  dimensions.insert(dimensions.end(), shape.begin(), shape.end());
  return dimensions.data() + first;
}

class KernelPrimitive : public mx::Primitive {
 public:
  KernelPrimitive(mx::Stream stream, MlxCall call) : Primitive(stream), call_(std::move(call)) {}

  // Before the node is used.
  void attach(std::shared_ptr<MlxRules> rules, const std::vector<mx::array>& inputs) {
    rules_ = std::move(rules);
    for (const mx::array& input : inputs) shapes_.push_back(input.shape());
  }

  void eval_cpu(const std::vector<mx::array>& given, std::vector<mx::array>& outputs) override {
    try {
      add_to_stream(given, outputs);
    } catch (...) {
      // MLX counts what it has added to the stream before as evaluated, with nothing to wait for, and reads it at once.
      auto done = std::make_shared<std::promise<void>>();
      std::future<void> reached = done->get_future();
      mx::cpu::get_command_encoder(stream()).dispatch([done] { done->set_value(); });
      reached.wait();
      throw;
    }
  }

  void add_to_stream(const std::vector<mx::array>& given, std::vector<mx::array>& outputs) {
    const std::optional<OtherShapes> other = for_other_shapes(given);
    const MlxCall& made = other ? other->call : call_;
    const std::vector<mx::array>& inputs = other ? other->inputs : given;
    KernelObject& kernel = *made.kernel;
    auto [shapes, dtypes] = types_of(outputs);
    KernelObject::Found found;
    // All that may be large is allocated here too: this thread can still say what it has no room for.
    auto copies = std::make_shared<InputCopies>();
    with_call(made, Known::kStrides, inputs, shapes, dtypes, [&](const Call& call) {
      kernel.check_writable_inputs(call);
      found = kernel.find_or_compile(call);
      warn_of_input_writes(call, found);
      *copies = allocate_copies(kernel, call);
    });
    // Outputs are new memory.
    if (writes_inputs(*found.variant))
      with_call(made, Known::kData, inputs, shapes, dtypes,
                [&](const Call& call) { check_written_inputs(kernel, *found.variant, call, {}); });
    for (size_t i = 0; i < outputs.size(); ++i) allocate(outputs[i], i);

    auto& encoder = mx::cpu::get_command_encoder(stream());
    // MLX itself keeps the memory of inputs and outputs until the task has run; a task that owned its arrays would
    // keep MLX from giving their memory to later ones.
    std::vector<mx::array> weak_inputs, weak_outputs;
    for (const mx::array& input : inputs) {
      encoder.set_input_array(input);
      weak_inputs.push_back(mx::array::unsafe_weak_copy(input));
    }
    for (mx::array& output : outputs) {
      encoder.set_output_array(output);
      weak_outputs.push_back(mx::array::unsafe_weak_copy(output));
    }
    auto stop = std::make_shared<LaunchStop>();
    // From here on the arrays' data exists, but what earlier tasks write into it may not have been written.
    auto task = [call = made, found, kept = other ? other->numbers : std::vector<mx::array>(),
                 copies = std::move(copies), shapes = std::move(shapes), dtypes = std::move(dtypes),
                 inputs = std::move(weak_inputs), outputs = std::move(weak_outputs), stop]() mutable {
      std::vector<void*> data;
      for (mx::array& output : outputs) data.push_back(output.data<void>());
      with_call(call, Known::kData, inputs, shapes, dtypes,
                [&](const Call& view) { launch(*call.kernel, found, view, data, *copies, stop.get()); });
      // A stream keeps what it ran until it runs more.
      copies.reset();
    };
    // What takes long is waited for too where it may be interrupted.
    double threads = 1;
    for (int64_t size : made.grid) threads *= static_cast<double>(size);
    bool is_long = threads >= kLongLaunchThreads && can_be_interrupted();
    if (!found.variant->binary->code->may_fail() && !is_long) {
      encoder.dispatch(std::move(task));
      return;
    }
    // MLX loses count of a stream's tasks where one throws while the main thread adds others, and waits for ever once
    // some are missing; besides, it passes on no more than the message. So this thread waits, and throws itself.
    auto done = std::make_shared<std::promise<void>>();
    std::future<void> result = done->get_future();
    encoder.dispatch([task = std::move(task), done]() mutable {
      try {
        task();
        done->set_value();
      } catch (...) {
        done->set_exception(std::current_exception());
      }
    });
    while (can_be_interrupted() &&
           result.wait_for(std::chrono::milliseconds(kInterruptionCheckMs)) != std::future_status::ready)
      if (check_interruption()) {
        stop->is_stopped = 1;
        result.wait();
        throw Interrupted();  // also where the task has just ended
      }
    result.get();
  }

  // Everything becomes nodes of the stream's CUDA graph, by MLX's own means: the copies and fills that come first, and
  // the kernel. MLX keeps the memory of inputs and outputs until the graph has run.
  void eval_gpu(const std::vector<mx::array>& given, std::vector<mx::array>& outputs) override {
    check_mlx_cuda();
    const std::optional<OtherShapes> other = for_other_shapes(given);
    const MlxCall& made = other ? other->call : call_;
    const std::vector<mx::array>& inputs = other ? other->inputs : given;
    if (other)
      for (const mx::array& number : other->numbers) keep_on_gpu(number, stream());
    KernelObject& kernel = *made.kernel;
    auto [shapes, dtypes] = types_of(outputs);
    KernelObject::Found found;
    auto launch_with = [&](const std::vector<mx::array>& read, Call call) {
      std::vector<void*> data;
      for (const mx::array& output : outputs) data.push_back(gpu_address(output));
      MlxGpuQueue queue(stream(), read, outputs);
      call.init_value.reset();
      call.queue = &queue;
      launch(kernel, found, call, data, {});
    };
    auto make_arrays = [&](const auto& make) {
      try {
        make();
      } catch (const std::runtime_error& error) {
        throw DeviceError(
            concat(message_prefix(kernel.spec().dialect), "`", printable(kernel.spec().name), "` on ",
                   found.variant->target->name(),
                   ": MLX cannot make its outputs, or row-contiguous copies of its inputs: ", error.what()));
      }
    };
    std::vector<mx::array> read;  // where inputs are copied
    with_call(made, Known::kData, inputs, shapes, dtypes, [&](const Call& call) {
      kernel.check_writable_inputs(call);
      found = kernel.find_or_compile(call);
      warn_of_input_writes(call, found);
      make_arrays([&] {
        auto is_copied = [&](const InputArray& input) { return kernel.copies(input); };
        if (std::ranges::any_of(call.inputs, is_copied))
          for (size_t i = 0; i < inputs.size(); ++i)
            read.push_back(is_copied(call.inputs[i]) ? copy_on_gpu(inputs[i], stream()) : inputs[i]);
        for (mx::array& output : outputs) make_on_gpu(output);
      });
      if (read.empty()) launch_with(inputs, call);
    });
    if (!read.empty())
      with_call(made, Known::kData, read, shapes, dtypes, [&](const Call& call) { launch_with(read, call); });
  }

  // Not the name of MLX's own kernels: by its name MLX takes a node for one of its classes when it exports a graph.
  const char* name() const override { return "KilnKernel"; }

  // Without rules, what MLX says where its own kernels are transformed.
  std::vector<mx::array> jvp(const std::vector<mx::array>& primals, const std::vector<mx::array>& tangents,
                             const std::vector<int>& argnums) override {
    if (!rules_) refuse("[Primitive::jvp] Not implemented for CustomKernel.");
    return rules_->jvp(primals, tangents, argnums);
  }
  std::vector<mx::array> vjp(const std::vector<mx::array>& primals, const std::vector<mx::array>& cotangents,
                             const std::vector<int>& argnums, const std::vector<mx::array>& outputs) override {
    if (!rules_) refuse("[Primitive::vjp] Not implemented for CustomKernel.");
    return rules_->vjp(primals, cotangents, argnums, outputs);
  }
  std::pair<std::vector<mx::array>, std::vector<int>> vmap(const std::vector<mx::array>& inputs,
                                                           const std::vector<int>& axes) override {
    if (!rules_) refuse("[Primitive::vmap] Not implemented for CustomKernel.");
    return rules_->vmap(inputs, axes);
  }
  std::vector<mx::Shape> output_shapes(const std::vector<mx::array>& inputs) override {
    if (!rules_) refuse("[Primitive::output_shapes] CustomKernel cannot infer output shapes.");
    return rules_->output_shapes(inputs);
  }
  // A function of arrays writes none of its inputs, so that two equal ones are one.
  bool is_equivalent(const mx::Primitive& other) const override {
    const auto& kernel = static_cast<const KernelPrimitive&>(other);
    return rules_ && kernel.rules_ && rules_->is_equivalent(*kernel.rules_) && shapes_ == kernel.shapes_;
  }

 private:
  struct OtherShapes {
    MlxCall call;
    std::vector<mx::array> inputs;
    std::vector<mx::array> numbers;  // those of `inputs` that are not the node's own
  };

  // The call where inputs have other shapes than when the node was made, in a graph that was compiled for any.
  std::optional<OtherShapes> for_other_shapes(const std::vector<mx::array>& inputs) const {
    auto has_shape = [](const mx::array& input, const mx::Shape& shape) { return input.shape() == shape; };
    if (!rules_ || std::ranges::equal(inputs, shapes_, has_shape)) return std::nullopt;
    MlxRules::Extents extents = rules_->extents(inputs);
    MlxCall call = call_;
    call.grid = extents.grid;
    call.threadgroup = extents.threadgroup;
    call.template_arguments = std::move(extents.template_arguments);
    OtherShapes other{std::move(call), inputs, {}};
    const size_t first = inputs.size() - extents.numbers.size();
    for (size_t i = 0; i < extents.numbers.size(); ++i) {
      const int64_t number = extents.numbers[i];
      if (inputs[first + i].dtype() == mx::int32 && number != static_cast<int32_t>(number))
        throw ValueError(concat(message_prefix(call_.kernel->spec().dialect), "`", printable(call_.kernel->spec().name),
                                "` has ", number,
                                " elements or threads, which a graph of 32-bit numbers cannot have."));
      other.inputs[first + i] = other.numbers.emplace_back(number, inputs[first + i].dtype());
    }
    return other;
  }

  static std::pair<std::vector<mx::Shape>, std::vector<Dtype>> types_of(const std::vector<mx::array>& outputs) {
    std::pair<std::vector<mx::Shape>, std::vector<Dtype>> types;
    for (const mx::array& output : outputs) {
      types.first.push_back(output.shape());
      types.second.push_back(to_kiln(output.dtype()));
    }
    return types;
  }

  static bool writes_inputs(const Variant& variant) {
    return std::ranges::any_of(variant.unit.parameters, &KernelParameter::is_writable_input);
  }

  void warn_of_input_writes(const Call& call, const KernelObject::Found& found) const {
    if (!call_.warn) return;
    std::string message = call_.kernel->input_write_warning(call, *found.variant);
    if (message.empty()) return;
    try {
      call_.warn(message);
    } catch (...) {
      call_.kernel->retract_input_write_warning();
      throw;
    }
  }

  // MLX's allocator on the CPU counts memory that it did not get as used. Above MLX's limit each evaluation then waits
  // for other work, for ever if a task of the stream has failed. So it is not asked for what there is not. Only sizes
  // are tried that the C library maps by themselves or that are as cheap.
  static bool may_be_allocated(size_t bytes) {
    constexpr size_t kTried = size_t{1} << 20;
    if (bytes < kTried) return true;
    const std::unique_ptr<void, decltype(&std::free)> memory(std::malloc(bytes), &std::free);
    return memory != nullptr;
  }

  // MLX's allocator returns a buffer; since 0.32.4 an object that owns one.
  template <typename Memory>
  static const void* address_of(const Memory& memory) {
    if constexpr (requires { memory.buffer(); })
      return memory.buffer().ptr();
    else
      return memory.ptr();
  }

  void allocate(mx::array& output, size_t index) const {
    const size_t bytes = output.nbytes();
    if (!may_be_allocated(bytes)) throw lack_of_memory(bytes, index);
    auto memory = mx::allocator::malloc(bytes);
    if (!address_of(memory) && bytes > 0) throw lack_of_memory(bytes, index);
    output.set_data(std::move(memory));
  }

  OutOfMemory lack_of_memory(size_t bytes, size_t index) const {
    const auto& names = call_.kernel->spec().output_names;
    return OutOfMemory(concat(message_prefix(call_.kernel->spec().dialect), "There is no memory for the ", bytes,
                              " bytes of output `", names ? names->at(index) : call_.output_names.at(index), "`."));
  }

  void make_on_gpu(mx::array& output) const {
    if (!call_.init_value) return allocate_on_gpu(output);
    DefaultFloatingPoint floating_point;  // the value is converted
    Dtype dtype = to_kiln(output.dtype());
    auto element = element_bytes(dtype, *call_.init_value);
    fill_on_gpu(output, {element.data(), size_of(dtype)});
  }

  [[noreturn]] static void refuse(const char* message) { throw std::invalid_argument(message); }

  const MlxCall call_;
  std::shared_ptr<MlxRules> rules_;
  std::vector<mx::Shape> shapes_;  // of the inputs, where there are rules
};

}  // namespace

void attach_rules(const mx::array& output, std::shared_ptr<MlxRules> rules) {
  auto* primitive = dynamic_cast<KernelPrimitive*>(&output.primitive());
  if (!primitive) throw InternalError("rules are attached to what is no kernel");
  primitive->attach(std::move(rules), output.inputs());
}

Dtype to_kiln(mx::Dtype dtype) {
  switch (dtype.val()) {
    case mx::Dtype::Val::bool_: return Dtype::kBool;
    case mx::Dtype::Val::uint8: return Dtype::kUInt8;
    case mx::Dtype::Val::uint16: return Dtype::kUInt16;
    case mx::Dtype::Val::uint32: return Dtype::kUInt32;
    case mx::Dtype::Val::uint64: return Dtype::kUInt64;
    case mx::Dtype::Val::int8: return Dtype::kInt8;
    case mx::Dtype::Val::int16: return Dtype::kInt16;
    case mx::Dtype::Val::int32: return Dtype::kInt32;
    case mx::Dtype::Val::int64: return Dtype::kInt64;
    case mx::Dtype::Val::float16: return Dtype::kFloat16;
    case mx::Dtype::Val::bfloat16: return Dtype::kBFloat16;
    case mx::Dtype::Val::float32: return Dtype::kFloat32;
    case mx::Dtype::Val::float64: return Dtype::kFloat64;
    case mx::Dtype::Val::complex64: return Dtype::kComplex64;
  }
  throw InternalError("MLX has a dtype that Kiln does not know");
}

mx::Dtype to_mlx(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBool: return mx::bool_;
    case Dtype::kUInt8: return mx::uint8;
    case Dtype::kUInt16: return mx::uint16;
    case Dtype::kUInt32: return mx::uint32;
    case Dtype::kUInt64: return mx::uint64;
    case Dtype::kInt8: return mx::int8;
    case Dtype::kInt16: return mx::int16;
    case Dtype::kInt32: return mx::int32;
    case Dtype::kInt64: return mx::int64;
    case Dtype::kFloat16: return mx::float16;
    case Dtype::kBFloat16: return mx::bfloat16;
    case Dtype::kFloat32: return mx::float32;
    case Dtype::kFloat64: return mx::float64;
    case Dtype::kComplex64: return mx::complex64;
  }
  throw InternalError("dtype without a counterpart in MLX");
}

void with_call(const MlxCall& call, Known known, const std::vector<mx::array>& inputs,
               const std::vector<mx::Shape>& output_shapes, const std::vector<Dtype>& output_dtypes,
               const std::function<void(const Call&)>& function) {
  KILN_STATIC_TLS thread_local ThreadState<CallStorage> storage_of_thread;
  Borrowed borrowed(*storage_of_thread);
  CallStorage& storage = *borrowed;
  storage.dimensions.clear();
  storage.inputs.clear();
  storage.outputs.clear();
  size_t dimensions = 0;
  for (const mx::array& input : inputs) dimensions += 2 * input.ndim();
  for (const mx::Shape& shape : output_shapes) dimensions += shape.size();
  storage.dimensions.reserve(dimensions);  // so that nothing moves below

  for (const mx::array& input : inputs) {
    size_t rank = input.ndim();
    const int64_t* shape = append(storage.dimensions, input.shape());
    size_t first = storage.dimensions.size();
    storage.dimensions.resize(first + rank);
    int64_t* strides = storage.dimensions.data() + first;
    if (known == Known::kShapes)
      write_row_contiguous_strides({shape, rank}, {strides, rank});
    else
      std::copy(input.strides().begin(), input.strides().end(), strides);
    const void* data = nullptr;
    if (known == Known::kData) data = traits_of(call.device).has_own_memory ? gpu_address(input) : input.data<void>();
    storage.inputs.push_back({data, to_kiln(input.dtype()), {shape, rank}, {strides, rank}});
  }
  for (size_t i = 0; i < output_shapes.size(); ++i)
    storage.outputs.push_back({i < output_dtypes.size() ? output_dtypes[i] : Dtype::kFloat32,
                               {append(storage.dimensions, output_shapes[i]), output_shapes[i].size()}});
  function({storage.inputs, storage.outputs, call.template_arguments, call.grid, call.threadgroup, call.init_value,
            call.input_names, call.output_names, call.device});
}

std::vector<mx::array> add_to_graph(MlxCall call, const std::vector<mx::array>& inputs,
                                    const std::vector<mx::Shape>& output_shapes,
                                    const std::vector<Dtype>& output_dtypes, mx::Stream stream) {
  call.device = device_of(stream);
  with_call(call, Known::kShapes, inputs, output_shapes, output_dtypes,
            [&](const Call& view) { call.kernel->check(view); });
  std::vector<mx::Dtype> dtypes;
  for (Dtype dtype : output_dtypes) dtypes.push_back(to_mlx(dtype));
  auto primitive = std::make_shared<KernelPrimitive>(stream, std::move(call));
  return mx::array::make_arrays(output_shapes, dtypes, primitive, inputs);
}

}  // namespace kiln
