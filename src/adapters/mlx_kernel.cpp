// The functions of <kiln/mlx.h>: MLX's types on the one side, a graph node on the other.
#include "adapters/mlx_kernel.h"

#include <cstdio>
#include <iostream>
#include <memory>
#include <utility>

#include "adapters/mlx_primitive.h"
#include "adapters/mlx_stream.h"
#include "core/text.h"
#include "kiln/mlx.h"

namespace kiln::mlx {
namespace {

namespace mx = ::mlx::core;

MathMode to_kiln(mx::MathMode mode) {
  switch (mode) {
    case mx::MathMode::Safe: return MathMode::kSafe;
    case mx::MathMode::Relaxed: return MathMode::kRelaxed;
    case mx::MathMode::Fast: return MathMode::kFast;
  }
  throw ValueError("[metal_kernel] Expected math_mode to be Safe, Relaxed or Fast.");
}

void warn(const std::string& message) { std::fprintf(stderr, "warning: %s\n", message.c_str()); }

mx::fast::CustomKernelFunction make(KernelSpec spec) {
  return KernelFunction{std::make_shared<KernelObject>(std::move(spec))};
}

KernelSpec spec_of(Dialect dialect, const std::string& name, const std::vector<std::string>& input_names,
                   const std::vector<std::string>& output_names, const std::string& source, const std::string& header,
                   bool ensure_row_contiguous) {
  KernelSpec spec;
  spec.dialect = dialect;
  spec.name = name;
  spec.input_names = input_names;
  spec.output_names = output_names;
  spec.source = source;
  spec.header = header;
  spec.ensure_row_contiguous = ensure_row_contiguous;
  // These functions have the parameters of MLX's own, and stand in their place in programs written for a Mac.
  spec.allows_input_stores = true;
  return spec;
}

}  // namespace

Extent3 to_extent(const std::tuple<int, int, int>& value) {
  return {std::get<0>(value), std::get<1>(value), std::get<2>(value)};
}

TemplateArgument to_kiln(const std::pair<std::string, mx::fast::TemplateArg>& argument) {
  TemplateArgument result{argument.first, false};
  if (auto* dtype = std::get_if<mx::Dtype>(&argument.second))
    result.value = kiln::to_kiln(*dtype);
  else if (auto* flag = std::get_if<bool>(&argument.second))
    result.value = *flag;
  else
    result.value = static_cast<int32_t>(std::get<int>(argument.second));
  return result;
}

std::vector<mx::array> KernelFunction::operator()(
    const std::vector<mx::array>& inputs, const std::vector<mx::Shape>& output_shapes,
    const std::vector<mx::Dtype>& output_dtypes, std::tuple<int, int, int> grid, std::tuple<int, int, int> threadgroup,
    const std::vector<std::pair<std::string, mx::fast::TemplateArg>>& template_arguments,
    std::optional<float> init_value, bool verbose, mx::StreamOrDevice place) const {
  std::string_view interface = interface_name(kernel->spec().dialect);
  MlxCall call{kernel, {}, to_extent(grid), to_extent(threadgroup), {}, {}, {}, {}, warn};
  for (const auto& argument : template_arguments) call.template_arguments.push_back(to_kiln(argument));
  if (init_value) call.init_value = static_cast<double>(*init_value);
  std::vector<Dtype> dtypes;
  for (mx::Dtype dtype : output_dtypes) dtypes.push_back(kiln::to_kiln(dtype));
  size_t outputs = kernel->spec().output_names->size();
  if (dtypes.size() != outputs && output_shapes.size() == outputs)
    throw ValueError(concat("[", interface, "] Expected `output_dtypes` to have size ", outputs, " but got size ",
                            dtypes.size(), "."));
  if (verbose)
    with_call(call, Known::kShapes, inputs, output_shapes, dtypes, [&](const Call& view) {
      kernel->check(view);
      std::cout << verbose_text(kernel->unit_for(view)) << std::endl;
    });
  mx::Stream stream = stream_for(interface, place, warn);
  return add_to_graph(std::move(call), inputs, output_shapes, dtypes, stream);
}

mx::fast::CustomKernelFunction metal_kernel(const std::string& name, const std::vector<std::string>& input_names,
                                            const std::vector<std::string>& output_names, const std::string& source,
                                            const std::string& header, bool ensure_row_contiguous, bool atomic_outputs,
                                            const mx::CompileOptions& compile_options) {
  KernelSpec spec = spec_of(Dialect::kMetal, name, input_names, output_names, source, header, ensure_row_contiguous);
  spec.atomic_outputs = atomic_outputs;
  spec.compile_options.math_mode = to_kiln(compile_options.math_mode);
  return make(std::move(spec));
}

mx::fast::CustomKernelFunction cuda_kernel(const std::string& name, const std::vector<std::string>& input_names,
                                           const std::vector<std::string>& output_names, const std::string& source,
                                           const std::string& header, bool ensure_row_contiguous, int shared_memory) {
  KernelSpec spec = spec_of(Dialect::kCuda, name, input_names, output_names, source, header, ensure_row_contiguous);
  spec.shared_memory = shared_memory;
  return make(std::move(spec));
}

}  // namespace kiln::mlx
