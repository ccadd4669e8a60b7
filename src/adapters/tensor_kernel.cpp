// The array library of programs that have none. What a view cannot be is found here, before the runtime reads it: an
// address may be null or misaligned, and memory that the caller gives for outputs may overlap.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory_resource>
#include <utility>

#include "core/array_layout.h"
#include "core/device_traits.h"
#include "core/out_of_memory.h"
#include "core/text.h"
#include "frontend/includes.h"
#include "kiln/kernel.h"
#include "runtime/kernel_object.h"
#include "runtime/run.h"

namespace kiln {
namespace {

// A call as the runtime takes it; views `call`.
class CallView {
 public:
  CallView(const KernelObject& kernel, const KernelCall& call) : kernel_(kernel), call_(call) {
    inputs_.reserve(call.inputs.size());
    outputs_.reserve(call.output_shapes.size());
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const TensorView& tensor = call.inputs[i];
      if (tensor.shape().size() != tensor.strides().size())
        throw ValueError(concat(prefix(), "Expected the strides of ", input(i), " to have size ", tensor.shape().size(),
                                " but got size ", tensor.strides().size(), "."));
      inputs_.push_back({tensor.data(), tensor.dtype(), tensor.shape(), tensor.strides(), tensor.is_number()});
    }
    if (call.output_shapes.size() != call.output_dtypes.size() && call.output_shapes.size() == output_names().size())
      throw ValueError(concat(prefix(), "Expected `output_dtypes` to have size ", output_names().size(),
                              " but got size ", call.output_dtypes.size(), "."));
    for (size_t i = 0; i < call.output_shapes.size(); ++i)
      outputs_.push_back(
          {i < call.output_dtypes.size() ? call.output_dtypes[i] : Dtype::kFloat32, call.output_shapes[i]});
    for (const auto& [name, value] : call.template_arguments) template_arguments_.push_back({name, value});
  }

  Call call() const {
    Call call{};
    call.inputs = inputs_;
    call.outputs = outputs_;
    call.template_arguments = template_arguments_;
    call.grid = call_.grid;
    call.threadgroup = call_.threadgroup;
    call.init_value = call_.init_value;
    call.device = call_.device;
    call.stream = call_.stream;
    return call;
  }

  /// Tensors are this process's memory.
  void check_tensors_serve() const {
    if (traits_of(call_.device).has_own_memory)
      throw ValueError(concat(prefix(),
                              "On a GPU the caller provides the memory of the outputs: pass its addresses to ",
                              "`Kernel::run`."));
  }

  /// For a call that check_sizes() has accepted.
  void check_inputs() const {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (element_count(inputs_[i].shape) > 0) check_address(input(i), inputs_[i].data, inputs_[i].dtype);
  }

  /// For a call that check_sizes() has accepted.
  std::vector<void*> addresses_of(std::span<Tensor> outputs) const {
    check_count(outputs.size());
    std::vector<void*> data;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].dtype() != outputs_[i].dtype)
        throw ValueError(concat(prefix(), "Expected the tensor for output `", output_names()[i], "` to be of ",
                                kiln::name_of(outputs_[i].dtype), " but got ", kiln::name_of(outputs[i].dtype()), "."));
      if (!std::ranges::equal(outputs[i].shape(), outputs_[i].shape))
        throw ValueError(concat(prefix(), "Expected the tensor for output `", output_names()[i], "` to have shape ",
                                describe(outputs_[i].shape), " but got ", describe(outputs[i].shape()), "."));
      data.push_back(outputs[i].data());
    }
    return data;
  }

  /// For a call that check_sizes() and check_inputs() have accepted.
  void check_outputs(std::span<void* const> data) const {
    check_count(data.size());
    struct Written {
      Whom whom;
      uintptr_t begin, end;
    };
    std::byte buffer[512];
    std::pmr::monotonic_buffer_resource memory(buffer, sizeof buffer);
    std::pmr::vector<Written> written(&memory);
    written.reserve(outputs_.size());
    for (size_t i = 0; i < outputs_.size(); ++i) {
      auto bytes = static_cast<uintptr_t>(byte_count(outputs_[i].shape, outputs_[i].dtype));
      if (bytes == 0) continue;
      Whom whom{output_names()[i], i, "output"};
      check_address(whom, data[i], outputs_[i].dtype);
      auto begin = reinterpret_cast<uintptr_t>(data[i]);
      for (const Written& other : written)
        if (begin < other.end && other.begin < begin + bytes)
          throw ValueError(concat(prefix(), "The memory of ", other.whom, " and of ", whom, " overlap."));
      written.push_back({whom, begin, begin + bytes});
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      ElementRange range = byte_range(inputs_[i].shape, inputs_[i].strides, inputs_[i].dtype);
      if (range.first == range.end) continue;
      auto data_of_input = reinterpret_cast<uintptr_t>(inputs_[i].data);
      uintptr_t begin = data_of_input + static_cast<uintptr_t>(range.first);
      uintptr_t end = data_of_input + static_cast<uintptr_t>(range.end);
      for (const Written& other : written)
        if (begin < other.end && other.begin < end)
          throw ValueError(concat(prefix(), "The memory of ", input(i), " and of ", other.whom, " overlap."));
    }
  }

 private:
  std::string_view prefix() const { return message_prefix(kernel_.spec().dialect); }
  const std::vector<std::string>& output_names() const { return *kernel_.spec().output_names; }

  void check_count(size_t outputs) const {
    if (outputs != outputs_.size())
      throw ValueError(
          concat(prefix(), "Expected `outputs` to have size ", outputs_.size(), " but got size ", outputs, "."));
  }

  static std::string describe(std::span<const int64_t> shape) {
    std::vector<std::string> dimensions;
    for (int64_t dimension : shape) dimensions.push_back(std::to_string(dimension));
    return concat("(", join(dimensions, ", "), ")");
  }

  // An array of the call. Text is made of it where a message is: a call that is right makes none.
  struct Whom {
    std::string_view name;  // empty: there are more inputs than names, and it goes by its place
    size_t place;
    const char* kind;

    friend std::ostream& operator<<(std::ostream& out, const Whom& whom) {
      out << whom.kind << " `";
      if (whom.name.empty())
        out << whom.place;
      else
        out << whom.name;
      return out << "`";
    }
  };

  Whom input(size_t i) const {
    const std::vector<std::string>& names = *kernel_.spec().input_names;
    return {i < names.size() ? std::string_view(names[i]) : std::string_view(), i, "input"};
  }

  void check_address(const Whom& whom, const void* data, Dtype dtype) const {
    if (!data) throw ValueError(concat(prefix(), "The memory of ", whom, " is null."));
    // A complex number is two floats.
    size_t alignment = dtype == Dtype::kComplex64 ? alignof(float) : size_of(dtype);
    if (reinterpret_cast<uintptr_t>(data) % alignment != 0)
      throw ValueError(concat(prefix(), "The memory of ", whom, " is not aligned to ", alignment, " bytes."));
  }

  const KernelObject& kernel_;
  const KernelCall& call_;
  // Views are short-lived: few arrays need no memory but the stack's.
  std::byte buffer_[1024];
  std::pmr::monotonic_buffer_resource memory_{buffer_, sizeof buffer_};
  std::pmr::vector<InputArray> inputs_{&memory_};
  std::pmr::vector<OutputArray> outputs_{&memory_};
  std::vector<TemplateArgument> template_arguments_;
};

void print_source(KernelObject& kernel, const Call& call) {
  kernel.check(call);
  std::cout << verbose_text(kernel.unit_for(call)) << std::endl;
}

}  // namespace

std::vector<Tensor> Kernel::operator()(const KernelCall& call) const {
  CallView view(*object_, call);
  view.check_tensors_serve();
  object_->check_sizes(view.call());
  view.check_inputs();
  if (call.verbose) print_source(*object_, view.call());
  std::vector<Tensor> outputs;
  std::vector<void*> data;
  for (size_t i = 0; i < call.output_shapes.size(); ++i) {
    try {
      outputs.emplace_back(call.output_dtypes[i], call.output_shapes[i]);
    } catch (const std::bad_alloc&) {
      throw OutOfMemory(concat(message_prefix(object_->spec().dialect), "There is no memory for the ",
                               byte_count(call.output_shapes[i], call.output_dtypes[i]), " bytes of output `",
                               object_->spec().output_names->at(i), "`."));
    }
    data.push_back(outputs.back().data());
  }
  kiln::run(*object_, view.call(), data);
  return outputs;
}

void Kernel::run(const KernelCall& call, std::span<void* const> outputs) const {
  CallView view(*object_, call);
  Call read = view.call();
  std::shared_ptr<LaunchPlan> plan = find_plan(*object_, read);
  if (!plan) object_->check_sizes(read);
  view.check_inputs();
  view.check_outputs(outputs);
  if (call.verbose) print_source(*object_, read);
  if (plan)
    run_again(*plan, *object_, read, outputs);
  else
    kiln::run(*object_, read, outputs);
}

void Kernel::run(const KernelCall& call, std::span<Tensor> outputs) const {
  CallView view(*object_, call);
  view.check_tensors_serve();
  object_->check_sizes(view.call());
  std::vector<void*> data = view.addresses_of(outputs);
  run(call, std::span<void* const>(data));
}

std::string Kernel::source_for(const KernelCall& call) const {
  CallView view(*object_, call);
  object_->check(view.call());
  return object_->unit_for(view.call()).text;
}

CompiledKernel Kernel::compile(const KernelCall& call) const {
  CallView view(*object_, call);
  object_->check(view.call());
  if (call.verbose) print_source(*object_, view.call());
  return {object_, object_->find_or_compile(view.call()).variant};
}

const std::string& Kernel::name() const { return object_->spec().name; }

std::vector<Launch> Kernel::history() const { return object_->history().launches(); }

const std::string& CompiledKernel::name() const { return kernel_->spec().name; }
std::string CompiledKernel::target() const { return std::string(variant_->target->name()); }
std::string CompiledKernel::architecture() const { return variant_->target->spec().cpu; }
std::string CompiledKernel::engine() const { return variant_->binary->engine; }
std::string CompiledKernel::engine_reason() const { return variant_->binary->engine_reason; }
std::string CompiledKernel::source() const { return variant_->unit.text; }
std::span<const std::byte> CompiledKernel::machine_code() const { return variant_->binary->code->code(); }
size_t CompiledKernel::threadgroup_memory_bytes() const { return variant_->binary->code->threadgroup_memory_bytes(); }
size_t CompiledKernel::thread_memory_bytes() const { return variant_->binary->code->thread_memory_bytes(); }
std::vector<CompileStage> CompiledKernel::stages(const std::vector<std::string>& after) const {
  return kernel_->context().recompile(variant_->unit, *variant_->target, Context::Keep::kStages, after).stages;
}
std::vector<CompilePass> CompiledKernel::passes() const {
  return kernel_->context().recompile(variant_->unit, *variant_->target, Context::Keep::kStages).passes;
}
std::vector<CompileRemark> CompiledKernel::remarks() const {
  return kernel_->context().recompile(variant_->unit, *variant_->target, Context::Keep::kRemarks).remarks;
}
std::vector<Diagnostic> CompiledKernel::diagnostics() const { return variant_->binary->diagnostics; }
double CompiledKernel::compile_ms() const { return variant_->binary->compile_ms; }

namespace {

TextArgument as_argument(const KernelSource& source) {
  if (source.path()) return {{}, source.path()->string()};
  return {source.text(), {}};
}

// Everything but what only one of the dialects has. Reads files.
KernelSpec make_spec(Dialect dialect, std::string name, std::vector<std::string> input_names,
                     std::vector<std::string> output_names, const KernelSource& source, const KernelSource& header,
                     bool ensure_row_contiguous, CompileOptions options) {
  std::vector<std::string> include_dirs = std::exchange(options.include_dirs, {});
  TextArgument source_text = as_argument(source), header_text = as_argument(header);
  KernelFiles files = read_kernel_files(interface_name(dialect), source_text, header_text, std::move(include_dirs));
  return {.dialect = dialect,
          .name = std::move(name),
          .input_names = std::move(input_names),
          .output_names = std::move(output_names),
          .source = std::move(source_text.text),
          .header = std::move(header_text.text),
          .files = std::move(files),
          .ensure_row_contiguous = ensure_row_contiguous,
          .compile_options = std::move(options)};
}

}  // namespace

Kernel metal_kernel(std::string name, std::vector<std::string> input_names, std::vector<std::string> output_names,
                    const KernelSource& source, const KernelSource& header, bool ensure_row_contiguous,
                    bool atomic_outputs, const CompileOptions& compile_options) {
  KernelSpec spec = make_spec(Dialect::kMetal, std::move(name), std::move(input_names), std::move(output_names), source,
                              header, ensure_row_contiguous, compile_options);
  spec.atomic_outputs = atomic_outputs;
  return Kernel(std::make_shared<KernelObject>(std::move(spec)));
}

Kernel cuda_kernel(std::string name, std::vector<std::string> input_names, std::vector<std::string> output_names,
                   const KernelSource& source, const KernelSource& header, bool ensure_row_contiguous,
                   int64_t shared_memory, const CompileOptions& compile_options) {
  KernelSpec spec = make_spec(Dialect::kCuda, std::move(name), std::move(input_names), std::move(output_names), source,
                              header, ensure_row_contiguous, compile_options);
  spec.shared_memory = shared_memory;
  return Kernel(std::make_shared<KernelObject>(std::move(spec)));
}

}  // namespace kiln
